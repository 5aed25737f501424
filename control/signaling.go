package control

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-voice/parley/media"
)

// Tracer stores the SIP messages of attempts. A failure affects nothing else.
type Tracer interface {
	Trace(ctx context.Context, l Lease, ladder []media.Message) error
}

// ladderTimeout bounds the wait for SIP messages that follow the end of a call, such as the response to a BYE.
// traceTimeout bounds storing them.
const (
	ladderTimeout = 2 * time.Second
	traceTimeout  = 5 * time.Second
)

// trace stores the SIP messages of a finished attempt in the background. If the attempt was not answered, leg is nil
// and err is the error of Dial.
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

// Wait waits until the signaling of ended calls is stored or given up, and their recordings are finished. No call may
// start meanwhile.
func (r *Runner) Wait() { r.background.Wait() }
