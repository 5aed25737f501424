package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/playout"
)

const (
	// transferTimeout bounds each attempt to transfer.
	transferTimeout = 45 * time.Second

	// ringFirst is the silence before the first ring, ringOff the silence between two rings.
	ringFirst, ringOn, ringOff = time.Second, 2 * time.Second, 3 * time.Second
	ringLoud                   = 0.05 // level of each of the two tones, relative to full scale
)

func playRingback(ctx context.Context, m *playout.Player, u *playout.Utterance) {
	release, ok := m.Acquire(ctx, false)
	if !ok {
		return
	}
	defer release()
	pcm := tone.Ringback(u.Rate, ringOn, ringLoud)
	for wait := ringFirst; ; wait = ringOn + ringOff {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if m.Push(ctx, u, pcm, false) != nil {
			return
		}
	}
}

// A dialFunc calls a number on a separate leg.
type dialFunc = func(ctx context.Context, number string) (media.Leg, error)

// referCall asks the callee's side to call number. If that fails, it calls the number with
// dial, unless dial is nil. The returned leg is nil if the callee's side made the call.
func referCall(ctx context.Context, leg media.Leg, dial dialFunc, number string) (media.Leg, error) {
	err := errors.New("the leg cannot transfer calls")
	if r, ok := leg.(media.Referrer); ok {
		referring, cancel := context.WithTimeout(ctx, transferTimeout)
		err = r.Refer(referring, number)
		cancel()
	}
	if err == nil || dial == nil || ctx.Err() != nil {
		return nil, err
	}
	dialing, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	second, failed := dial(dialing, number)
	if failed != nil {
		return nil, errors.Join(err, fmt.Errorf("second leg: %w", failed))
	}
	return second, nil
}
