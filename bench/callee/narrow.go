package callee

import (
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/resample"
)

// Rate is the sample rate of lines in Hz. The audio of legs with other rates is resampled.
const Rate = 8000

// narrow makes a leg of another rate usable at Rate.
type narrow struct {
	media.Leg
	wide media.Frame
	down *resample.Resampler
}

func narrowLeg(leg media.Leg) media.Leg {
	if leg.Rate() == Rate {
		return leg
	}
	return &narrow{leg, make(media.Frame, media.FrameLen(leg.Rate())), resample.New(leg.Rate(), Rate)}
}

func (*narrow) Rate() int { return Rate }

func (n *narrow) ReadFrame(f media.Frame) error {
	if err := n.Leg.ReadFrame(n.wide); err != nil {
		return err
	}
	n.down.Resample(f[:0], n.wide)
	return nil
}

func (n *narrow) Arrived() (time.Time, bool) {
	if a, ok := n.Leg.(media.Arrival); ok {
		return a.Arrived()
	}
	return time.Time{}, false
}

func (n *narrow) Press(keys string) error { return press(n.Leg, keys) }

func (n *narrow) Play(feed media.Feed) {
	n.Leg.Play(newWidening(feed, n.Leg.Rate()))
}

// Departed returns when the leg sent the frame.
func (n *narrow) Departed(due time.Time) (time.Time, bool) {
	if d, ok := n.Leg.(departures); ok {
		return d.Departed(due)
	}
	return time.Time{}, false
}

// widening resamples a feed to the leg's rate. It delays the feed by exactly one frame, so that
// audio that ends with a frame still ends with a frame.
type widening struct {
	feed media.Feed
	f    media.Frame
	up   *resample.Resampler
	late []int16 // samples that extend the delay of resampler and codec to one frame
}

func newWidening(feed media.Feed, rate int) *widening {
	late := make([]int16, media.FrameLen(rate)-upped-split, 2*media.FrameLen(rate))
	return &widening{feed, make(media.Frame, media.FrameLen(Rate)), resample.New(Rate, rate), late}
}

func (w *widening) FillFrame(f media.Frame, due time.Time) {
	w.feed.FillFrame(w.f, due)
	kept := len(w.late)
	w.late = w.up.Resample(w.late, w.f)
	copy(f, w.late)
	w.late = w.late[:copy(w.late[:kept], w.late[len(w.late)-kept:])]
}

// press sends DTMF if the leg can.
func press(leg media.Leg, keys string) error {
	pad, ok := leg.(media.Keypad)
	if !ok {
		return errors.New("the leg cannot send DTMF")
	}
	return pad.Press(keys)
}
