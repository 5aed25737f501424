package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

// Legs is where a node writes down the second legs of its calls, to whom their
// parties are handed over. Such a leg is an attempt of its own: it rings once,
// too.
type Legs interface {
	// OpenLeg commits that a request to a number is about to leave for the party
	// of a call. It fails with an *Error where the number is forbidden or a limit
	// of the call's route is reached, and with ErrFenced where the call is not
	// the node's any more.
	OpenLeg(ctx context.Context, l Lease, number string, lease time.Duration) (SecondLeg, error)
	// MoveLeg moves it on. A state that was passed already is no error.
	MoveLeg(ctx context.Context, l Lease, to AttemptState) error
}

// A SecondLeg is one that may be dialled.
type SecondLeg struct {
	Lease  Lease
	Number string // digits
	Dial   string // what the carrier is asked for
	// Wait is how long the pacing of the route has the request wait.
	Wait time.Duration
}

// seconds are the second legs of a call that were answered.
type seconds struct {
	mu  sync.Mutex
	all []second
}

type second struct {
	lease Lease
	leg   media.Leg
}

func (s *seconds) add(l Lease, leg media.Leg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, second{l, leg})
}

// traceSeconds keeps the signalling of the second legs of a call that is over.
func (r *Runner) traceSeconds(ctx context.Context, log *slog.Logger, s *seconds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		r.trace(ctx, log.With("second", l.lease.AttemptID), l.lease, l.leg, nil)
	}
}

// bridge reaches numbers on second legs of a call, through the call's trunk, and
// adds those that were answered to others; nil where nobody keeps them.
func (r *Runner) bridge(log *slog.Logger, c *Claim, others *seconds) func(context.Context, string) (media.Leg, error) {
	if r.Legs == nil {
		return nil
	}
	return func(ctx context.Context, number string) (media.Leg, error) {
		lease := 3 * r.margin() // as the node's
		until := time.Now().Add(lease)
		second, err := r.Legs.OpenLeg(ctx, c.Lease, number, lease)
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		told := log.With("second", second.Lease.AttemptID)
		j := openJournal(ctx, legLedger{legs: r.Legs}, second.Lease, told)
		defer j.close()
		pace := time.NewTimer(second.Wait)
		defer pace.Stop()
		select {
		case <-pace.C:
		case <-ctx.Done(): // the dialer is told
		}
		to := c.Target
		to.ID, to.To, to.Number, to.NotAfter = second.Lease.AttemptID, second.Dial, second.Number, until.Add(second.Wait-r.margin())
		leg, err := r.Dialer.Dial(ctx, to, func(p media.Progress) {
			switch p {
			case media.Sent:
				j.mark(Sent, time.Now())
			case media.Ringing:
				j.mark(Rang, time.Now())
			default: // nothing that is kept
			}
		})
		if err != nil {
			j.mark(Closed, time.Now())
			r.trace(ctx, told, second.Lease, nil, err)
			return nil, err
		}
		j.mark(Answered, time.Now()) // the call's end ends it
		others.add(second.Lease, leg)
		return leg, nil
	}
}

// A legLedger has a journal write about a second leg.
type legLedger struct {
	Ledger // none: a second leg has marks alone

	legs Legs
}

// Mark implements Ledger.
func (l legLedger) Mark(ctx context.Context, lease Lease, to AttemptState, _ time.Time) error {
	return l.legs.MoveLeg(ctx, lease, to)
}
