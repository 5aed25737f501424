// Package bridge joins two legs, so that their parties talk to each other.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/resample"
)

// A Side is one of the two legs of a bridge.
type Side int

// Sides.
const (
	Neither Side = iota - 1
	A
	B
)

// A Tap hears what a side says, at the rate of its leg. It is called by one
// goroutine for each side, must not wait, and must not keep the frame.
type Tap func(from Side, f media.Frame)

// An Outcome is how a bridge went.
type Outcome struct {
	First Side        // that ended first; Neither where the context did
	Cause media.Cause // of its end
	Ways  [2]Way      // what became of the sound that each side said
}

// A Way counts the frames of one direction.
type Way struct {
	Passed  int64
	Dropped int64 // left out because too many waited
	Filled  int64 // made up because none was there
	Keys    int64 // passed on
	Unheard int64 // keys that the other side could not press
}

// Join lets the parties of two legs hear each other, until either leg ends or
// ctx does; then the rest is hung up. It takes the legs over: nobody else may
// read their frames or digits, or play to them. A digit pressed on one is
// pressed on the other where that is a media.Keypad; one that travels as a tone
// is heard there besides. tap may be nil.
//
// When Join returns both legs have ended. The error is that of a leg which
// failed rather than ended.
func Join(ctx context.Context, a, b media.Leg, tap Tap) (Outcome, error) {
	j := &join{legs: [2]media.Leg{a, b}, tap: tap, over: make(chan Side, 2)}
	for side := range j.queues {
		j.queues[side] = newQueue(j.legs[1-side].Rate())
		j.legs[1-side].Play(j.queues[side])
	}
	var work sync.WaitGroup
	var failed [2]error
	for _, side := range []Side{A, B} {
		work.Go(func() {
			failed[side] = j.carry(side)
			j.over <- side // holds one of each side: never waits
		})
		work.Go(func() { j.press(side) })
	}
	out := Outcome{First: Neither}
	select {
	case out.First = <-j.over:
		out.Cause = j.legs[out.First].Cause()
	case <-ctx.Done():
		out.Cause = media.LocalHangup
	}
	hung := errors.Join(a.Hangup(media.LocalHangup), b.Hangup(media.LocalHangup))
	work.Wait()
	for side := range out.Ways {
		out.Ways[side] = j.queues[side].way(j.keys[side])
	}
	return out, errors.Join(failed[A], failed[B], hung)
}

// A join is a bridge while it stands.
type join struct {
	legs   [2]media.Leg
	queues [2]*queue // of what each side says
	keys   [2]keys
	tap    Tap
	over   chan Side
}

// keys are counted by the goroutine that presses them.
type keys struct{ passed, unheard int64 }

// carry passes on what a side says until it ends.
func (j *join) carry(from Side) error {
	leg, q := j.legs[from], j.queues[from]
	f := make(media.Frame, media.FrameLen(leg.Rate()))
	other := j.legs[1-from].Rate()
	var r *resample.Resampler
	if leg.Rate() != other {
		r = resample.New(leg.Rate(), other)
	}
	size := media.FrameLen(other)
	ready := make([]int16, 0, 3*size)
	for {
		err := leg.ReadFrame(f)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("bridge: %w", err)
		}
		if j.tap != nil {
			j.tap(from, f)
		}
		if r == nil {
			q.push(f)
			continue
		}
		ready = r.Resample(ready, f)
		for len(ready) >= size {
			q.push(ready[:size])
			ready = ready[:copy(ready, ready[size:])]
		}
	}
}

// press passes on the keys of a side until it ends.
func (j *join) press(from Side) {
	pad, able := j.legs[1-from].(media.Keypad)
	for key := range j.legs[from].Digits() {
		if able && pad.Press(string(key)) == nil {
			j.keys[from].passed++
		} else {
			j.keys[from].unheard++
		}
	}
}
