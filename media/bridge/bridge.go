// Package bridge joins two legs, so that their remote parties talk to each other.
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

// Side identifies one of the two legs of a bridge.
type Side int

// Values of Side.
const (
	Neither Side = iota - 1
	A
	B
)

// Tap receives the audio from one side, at the sample rate of that side's leg. Each side calls it from a goroutine of
// its own. It must not block or keep the frame.
type Tap func(from Side, f media.Frame)

// Outcome describes a bridge that has ended.
type Outcome struct {
	First      Side // the side that ended first; Neither if ctx ended
	Cause      media.Cause
	Directions [2]DirectionStats // what each side sent
}

// DirectionStats holds the counts of frames and digits in one direction.
type DirectionStats struct {
	Passed      int64
	Dropped     int64 // dropped because too many frames waited
	Filled      int64 // concealed because no frame was waiting
	Keys        int64 // digits forwarded to the other side
	KeysDropped int64 // digits that could not be forwarded
}

// Join joins two legs until one of them or ctx ends, and then hangs up both. The legs belong to Join: the caller must
// not read their frames or digits, or play to them. Digits are forwarded if the other leg is a media.Keypad. Tones in
// the audio are also heard on the other side. tap may be nil.
//
// When Join returns, both legs have ended. The error reports a leg that failed.
func Join(ctx context.Context, a, b media.Leg, tap Tap) (Outcome, error) {
	j := &bridge{legs: [2]media.Leg{a, b}, tap: tap, ended: make(chan Side, 2)}
	for side := range j.queues {
		j.queues[side] = newQueue(j.legs[1-side].Rate())
		j.legs[1-side].Play(j.queues[side])
	}
	var work sync.WaitGroup
	var failed [2]error
	for _, side := range []Side{A, B} {
		work.Go(func() {
			failed[side] = j.forwardAudio(side)
			j.ended <- side // never blocks: the channel has room for both sides
		})
		work.Go(func() { j.forwardKeys(side) })
	}
	out := Outcome{First: Neither}
	select {
	case out.First = <-j.ended:
		out.Cause = j.legs[out.First].Cause()
	case <-ctx.Done():
		out.Cause = media.LocalHangup
	}
	hangupErr := errors.Join(a.Hangup(media.LocalHangup), b.Hangup(media.LocalHangup))
	work.Wait()
	for side := range out.Directions {
		out.Directions[side] = j.queues[side].stats(j.keys[side])
	}
	return out, errors.Join(failed[A], failed[B], hangupErr)
}

type bridge struct {
	legs   [2]media.Leg
	queues [2]*queue // frames from each side
	keys   [2]keyCounts
	tap    Tap
	ended  chan Side
}

// keyCounts is used only by the goroutine of forwardKeys.
type keyCounts struct{ passed, dropped int64 }

func (j *bridge) forwardAudio(from Side) error {
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

func (j *bridge) forwardKeys(from Side) {
	keypad, ok := j.legs[1-from].(media.Keypad)
	for key := range j.legs[from].Digits() {
		if ok && keypad.Press(string(key)) == nil {
			j.keys[from].passed++
		} else {
			j.keys[from].dropped++
		}
	}
}
