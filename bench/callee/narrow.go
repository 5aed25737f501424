package callee

import (
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/resample"
)

// Rate is the rate of lines in Hz. A leg of another rate is resampled.
const Rate = 8000

// narrow is a leg as one of Rate.
type narrow struct {
	media.Leg
	wide media.Frame
	down *resample.Resampler
}

// narrowed makes a leg one of Rate.
func narrowed(leg media.Leg) media.Leg {
	if leg.Rate() == Rate {
		return leg
	}
	return &narrow{leg, make(media.Frame, media.FrameLen(leg.Rate())), resample.New(leg.Rate(), Rate)}
}

// Rate implements media.Source.
func (*narrow) Rate() int { return Rate }

// ReadFrame implements media.Source.
func (n *narrow) ReadFrame(f media.Frame) error {
	if err := n.Leg.ReadFrame(n.wide); err != nil {
		return err
	}
	n.down.Resample(f[:0], n.wide)
	return nil
}

// Arrived implements media.Arrival.
func (n *narrow) Arrived() (time.Time, bool) {
	if a, ok := n.Leg.(media.Arrival); ok {
		return a.Arrived()
	}
	return time.Time{}, false
}

// Press implements media.Keypad.
func (n *narrow) Press(keys string) error { return press(n.Leg, keys) }

// Play implements media.Leg.
func (n *narrow) Play(feed media.Feed) {
	n.Leg.Play(newWidening(feed, n.Leg.Rate()))
}

// Departed is as of the leg.
func (n *narrow) Departed(due time.Time) (time.Time, bool) {
	if d, ok := n.Leg.(departures); ok {
		return d.Departed(due)
	}
	return time.Time{}, false
}

// widening is a feed of Rate as one of a leg's: in packets it is later by a frame
// to the sample, so that what ends with a frame goes on ending with one.
type widening struct {
	feed media.Feed
	f    media.Frame
	up   *resample.Resampler
	late []int16 // what filter and codec are not late by themselves
}

func newWidening(feed media.Feed, rate int) *widening {
	late := make([]int16, media.FrameLen(rate)-upped-split, 2*media.FrameLen(rate))
	return &widening{feed, make(media.Frame, media.FrameLen(Rate)), resample.New(Rate, rate), late}
}

// FillFrame implements media.Feed.
func (w *widening) FillFrame(f media.Frame, due time.Time) {
	w.feed.FillFrame(w.f, due)
	kept := len(w.late)
	w.late = w.up.Resample(w.late, w.f)
	copy(f, w.late)
	w.late = w.late[:copy(w.late[:kept], w.late[len(w.late)-kept:])]
}

// press presses keys on a leg that has any.
func press(leg media.Leg, keys string) error {
	pad, ok := leg.(media.Keypad)
	if !ok {
		return errors.New("a leg without keys")
	}
	return pad.Press(keys)
}
