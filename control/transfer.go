package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

// LegStore stores transfer legs. A transfer leg is an attempt of its own and is dialed at most once.
type LegStore interface {
	// OpenLeg commits that the INVITE to a transfer target is about to leave. It returns an *Error if the number is
	// forbidden or the route has reached a limit, and ErrFenced after the call's lease was lost.
	OpenLeg(ctx context.Context, l Lease, number string, lease time.Duration) (TransferLeg, error)
	// MoveLeg moves a transfer leg to another state. It ignores a state that the leg has passed already.
	MoveLeg(ctx context.Context, l Lease, to AttemptState) error
}

// TransferLeg is a transfer leg that may be dialed.
type TransferLeg struct {
	Lease  Lease
	Number string // digits of the transfer target
	Dial   string // the number as the carrier receives it
	// Wait is how long to wait before dialing, because of the pacing of the route.
	Wait time.Duration
	// CostPerMinute is the trunk's rate for the number; nil if the trunk has none.
	CostPerMinute *float64
}

// AnsweredLeg is a transfer leg that was answered.
type AnsweredLeg struct {
	AnsweredAt    time.Time `json:"answered_at"`
	CostPerMinute *float64  `json:"cost_per_minute"`
}

// transferLegs holds the answered transfer legs of a call.
type transferLegs struct {
	mu  sync.Mutex
	all []answeredLeg
}

type answeredLeg struct {
	AnsweredLeg

	lease Lease
	leg   media.Leg
}

func (s *transferLegs) add(l TransferLeg, leg media.Leg, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, answeredLeg{AnsweredLeg{at, l.CostPerMinute}, l.Lease, leg})
}

// answered returns the answered legs, for the result of the call.
func (s *transferLegs) answered() (legs []AnsweredLeg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		legs = append(legs, l.AnsweredLeg)
	}
	return legs
}

// traceTransferLegs stores the SIP messages of the transfer legs after the call.
func (r *Runner) traceTransferLegs(ctx context.Context, log *slog.Logger, s *transferLegs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		r.trace(ctx, log.With("transfer_attempt", l.lease.AttemptID), l.lease, l.leg, nil)
	}
}

// transferDialer returns a function that dials a number through the call's trunk and adds each answered leg to
// others. It returns nil if there is no LegStore.
func (r *Runner) transferDialer(parent *slog.Logger, c *Claim, others *transferLegs) func(context.Context, string) (media.Leg, error) {
	if r.Legs == nil {
		return nil
	}
	return func(ctx context.Context, number string) (media.Leg, error) {
		lease := 3 * r.margin() // equals the node's lease
		until := time.Now().Add(lease)
		opened, err := r.Legs.OpenLeg(ctx, c.Lease, number, lease)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		log := parent.With("transfer_attempt", opened.Lease.AttemptID)
		j := openCallLog(ctx, legAttempts{legs: r.Legs}, opened.Lease, log)
		defer j.close()
		pace := time.NewTimer(opened.Wait)
		defer pace.Stop()
		select {
		case <-pace.C:
		case <-ctx.Done(): // the call of Dial below returns the error
		}
		to := c.Target
		to.ID, to.To, to.Number, to.NotAfter = opened.Lease.AttemptID, opened.Dial, opened.Number, until.Add(opened.Wait-r.margin())
		leg, err := r.Dialer.Dial(ctx, to, func(p media.Progress) {
			switch p {
			case media.Sent:
				j.mark(Sent, time.Now())
			case media.Ringing:
				j.mark(Rang, time.Now())
			default: // other progress is not stored
			}
		})
		if err != nil {
			j.mark(Closed, time.Now())
			r.trace(ctx, log, opened.Lease, nil, err)
			return nil, err
		}
		now := time.Now()
		j.mark(Answered, now) // the leg stays answered until the call ends
		others.add(opened, leg, now)
		return leg, nil
	}
}

// legAttempts is an AttemptStore through which a callLog writes the states of a transfer leg.
type legAttempts struct {
	AttemptStore // nil, because only Mark is called: a transfer leg has no lines and turns

	legs LegStore
}

// Mark implements AttemptStore.
func (l legAttempts) Mark(ctx context.Context, lease Lease, to AttemptState, _ time.Time) error {
	return l.legs.MoveLeg(ctx, lease, to)
}
