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
	// OpenLeg commits that a request to a number is about to leave. It fails with an *Error if the number is forbidden
	// or a limit of the route is reached, and with ErrFenced after the call's lease is lost.
	OpenLeg(ctx context.Context, l Lease, number string, lease time.Duration) (TransferLeg, error)
	// MoveLeg advances it. A state that was passed already is ignored.
	MoveLeg(ctx context.Context, l Lease, to AttemptState) error
}

// TransferLeg is a leg that may be dialed.
type TransferLeg struct {
	Lease  Lease
	Number string // digits
	Dial   string // the number sent to the carrier
	// Wait is the delay required by the pacing of the route.
	Wait time.Duration
}

// transferLegs are the answered transfer legs of a call.
type transferLegs struct {
	mu  sync.Mutex
	all []answeredLeg
}

type answeredLeg struct {
	lease Lease
	leg   media.Leg
}

func (s *transferLegs) add(l Lease, leg media.Leg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, answeredLeg{l, leg})
}

// traceTransferLegs stores the signaling of transfer legs after the call.
func (r *Runner) traceTransferLegs(ctx context.Context, log *slog.Logger, s *transferLegs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		r.trace(ctx, log.With("transfer_attempt", l.lease.AttemptID), l.lease, l.leg, nil)
	}
}

// transferDialer returns a function that dials a number through the call's trunk and adds
// answered legs to others; nil without a LegStore.
func (r *Runner) transferDialer(parent *slog.Logger, c *Claim, others *transferLegs) func(context.Context, string) (media.Leg, error) {
	if r.Legs == nil {
		return nil
	}
	return func(ctx context.Context, number string) (media.Leg, error) {
		lease := 3 * r.margin() // as the node's
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
		case <-ctx.Done(): // Dial fails
		}
		to := c.Target
		to.ID, to.To, to.Number, to.NotAfter = opened.Lease.AttemptID, opened.Dial, opened.Number, until.Add(opened.Wait-r.margin())
		leg, err := r.Dialer.Dial(ctx, to, func(p media.Progress) {
			switch p {
			case media.Sent:
				j.mark(Sent, time.Now())
			case media.Ringing:
				j.mark(Rang, time.Now())
			default: // not stored
			}
		})
		if err != nil {
			j.mark(Closed, time.Now())
			r.trace(ctx, log, opened.Lease, nil, err)
			return nil, err
		}
		j.mark(Answered, time.Now()) // ends with the call
		others.add(opened.Lease, leg)
		return leg, nil
	}
}

// legAttempts lets a callLog write the states of a transfer leg.
type legAttempts struct {
	AttemptStore // nil: a transfer leg has states only

	legs LegStore
}

// Mark implements AttemptStore.
func (l legAttempts) Mark(ctx context.Context, lease Lease, to AttemptState, _ time.Time) error {
	return l.legs.MoveLeg(ctx, lease, to)
}
