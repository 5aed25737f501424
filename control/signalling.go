package control

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Tracer keeps the signalling of attempts. What it cannot keep is lost, and
// nothing else is.
type Tracer interface {
	Trace(ctx context.Context, l Lease, ladder []media.Message) error
}

// The signalling of a call goes on after it: a BYE waits for its answer.
const (
	ladderFor = 2 * time.Second
	traceFor  = 5 * time.Second
)

// trace keeps the signalling of an attempt whose end is written, and holds
// nobody up. leg is nil where nobody answered, and then err says why.
func (r *Runner) trace(ctx context.Context, log *slog.Logger, l Lease, leg media.Leg, err error) {
	if r.Tracer == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	r.tracing.Go(func() {
		ladder := signalling(ctx, leg, err)
		if len(ladder) == 0 {
			return
		}
		short, cancel := context.WithTimeout(ctx, traceFor)
		defer cancel()
		if err := r.Tracer.Trace(short, l, ladder); err != nil {
			log.WarnContext(ctx, "the signalling of the call is not kept", "err", err)
		}
	})
}

func signalling(ctx context.Context, leg media.Leg, err error) []media.Message {
	if refused, ok := errors.AsType[*media.DialError](err); ok {
		return refused.Ladder
	}
	traced, ok := leg.(media.Traced)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ladderFor)
	defer cancel()
	return traced.Ladder(ctx)
}

// Wait returns when the signalling of all calls that have ended is kept, or
// given up: within seconds. No call may be run meanwhile.
func (r *Runner) Wait() { r.tracing.Wait() }
