// Package handover has somebody else take a call over.
package handover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/mouth"
)

const (
	// longest is how long somebody may take to take a call over.
	longest = 45 * time.Second

	// ringFirst is how long after the agent's last word the party hears the first
	// ring, of ringOn; ringOff is the silence between two.
	ringFirst, ringOn, ringOff = time.Second, 2 * time.Second, 3 * time.Second
	ringLoud                   = 0.05 // of full scale, each of its two tones
)

// Ring lets the party hear that somebody is being called, until ctx ends.
func Ring(ctx context.Context, m *mouth.Mouth, u *mouth.Utterance) {
	release, ok := m.Begin(ctx, false)
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

// A Bridge reaches a number on a leg of its own.
type Bridge = func(ctx context.Context, number string) (media.Leg, error)

// Refer has the party's side call the number or, where it does not, bridge, unless
// that is nil. It returns the leg that bridge reached, nil where the party's side
// called.
func Refer(ctx context.Context, leg media.Leg, bridge Bridge, number string) (media.Leg, error) {
	err := errors.New("the line cannot hand over")
	if r, ok := leg.(media.Referrer); ok {
		referring, cancel := context.WithTimeout(ctx, longest)
		err = r.Refer(referring, number)
		cancel()
	}
	if err == nil || bridge == nil || ctx.Err() != nil {
		return nil, err
	}
	dialling, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	second, failed := bridge(dialling, number)
	if failed != nil {
		return nil, errors.Join(err, fmt.Errorf("second leg: %w", failed))
	}
	return second, nil
}
