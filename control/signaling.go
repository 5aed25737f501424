package control

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-voice/parley/media"
)

// Tracer stores the signaling of attempts. A failure loses nothing else.
type Tracer interface {
	Trace(ctx context.Context, l Lease, ladder []media.Message) error
}

// Signaling continues after a call: a BYE waits for its response.
const (
	ladderTimeout = 2 * time.Second
	traceTimeout  = 5 * time.Second
)

// trace stores the signaling of a finished attempt in the background. leg is nil if it was
// not answered; err then tells why.
func (r *Runner) trace(ctx context.Context, log *slog.Logger, l Lease, leg media.Leg, err error) {
	if r.Tracer == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	r.background.Go(func() {
		ladder := ladderOf(ctx, leg, err)
		if len(ladder) == 0 {
			return
		}
		short, cancel := context.WithTimeout(ctx, traceTimeout)
		defer cancel()
		if err := r.Tracer.Trace(short, l, ladder); err != nil {
			log.WarnContext(ctx, "failed to store signaling", "err", err)
		}
	})
}

func ladderOf(ctx context.Context, leg media.Leg, err error) []media.Message {
	if refused, ok := errors.AsType[*media.DialError](err); ok {
		return refused.Ladder
	}
	traced, ok := leg.(media.SignalingTracer)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ladderTimeout)
	defer cancel()
	return traced.Ladder(ctx)
}

// Wait returns within seconds, when all background work of ended calls is done or given
// up. No call may start meanwhile.
func (r *Runner) Wait() { r.background.Wait() }
