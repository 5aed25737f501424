package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// Lags are by how much the sound of a leg is behind its frames. What resamples it
// is the bench's, and no part of the system; what a codec looks ahead is.
type Lags struct {
	Said  time.Duration // where it is encoded
	Sent  time.Duration // in packets
	Heard time.Duration // after it was decoded
}

// Of a wide leg, by how many samples is late what resamples lines, what resamples
// what was heard (media/resample), and what G.722 splits into bands.
const upped, downed, split = 31, 32, 11

// lagsOf are those of a leg.
func lagsOf(leg media.Leg) Lags {
	n, ok := leg.(*narrow)
	if !ok {
		return Lags{}
	}
	sample := time.Second / time.Duration(n.Leg.Rate())
	return Lags{Said: media.FrameTime - split*sample, Sent: media.FrameTime, Heard: downed * sample}
}
