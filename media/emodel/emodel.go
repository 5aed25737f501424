// Package emodel estimates how well a call is heard, by the E-model of ITU-T
// G.107 with all but delay, codec and loss at their defaults.
package emodel

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	best    = 93.2  // rating of a narrowband call with nothing wrong
	knee    = 177.3 // ms of delay from which it hurts more
	deepest = 95.0  // impairment by loss of everything
)

// robustness is how a codec bears random loss, Bpl of G.113: that of G.711
// with concealment. G.722 is put on the same scale, where a wider band earns
// nothing; it is taken to bear half as much, for its decoder is off for a while
// after a loss.
func robustness(codec string) float64 {
	if strings.EqualFold(codec, "G722") {
		return 12.5
	}
	return 25.1
}

// MOS estimates the opinion of a listener, from 1 to 4.5, who hears codec with
// a share of packets lost (0 to 1) after a delay one way.
func MOS(codec string, lost float64, delay time.Duration) float64 {
	percent := 100 * max(0, min(1, lost))
	ms := max(0, float64(delay)/float64(time.Millisecond))
	r := best - 0.024*ms - deepest*percent/(percent+robustness(codec))
	if ms > knee {
		r -= 0.11 * (ms - knee)
	}
	switch {
	case r <= 0:
		return 1
	case r >= 100:
		return 4.5
	default:
		return max(1, 1+0.035*r+r*(r-60)*(100-r)*7e-6)
	}
}

// Opinion rates a stretch of which late packets came too late to be heard. The
// delay is half of the round trip, a packet, and a buffer of twice the jitter.
func Opinion(codec string, s media.Stretch, late int64, trip time.Duration) float64 {
	all := s.Packets + s.Lost
	if s.Packets == 0 || all == 0 {
		return 0
	}
	lost := float64(s.Lost+late) / float64(all)
	return MOS(codec, lost, trip/2+media.FrameTime+2*s.Jitter)
}
