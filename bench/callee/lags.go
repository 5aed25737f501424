package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// Lags are the delays of a leg's audio behind its frames. Resampling belongs to
// the benchmark, the codec's look-ahead to the system.
type Lags struct {
	Said  time.Duration // delay at encoding
	Sent  time.Duration // delay in packets
	Heard time.Duration // delay after decoding
}

// Delays of a wideband leg in samples: of the resampler of lines, of the resampler of received
// audio (media/resample), and of the band split of G.722.
const upped, downed, split = 31, 32, 11

func lagsOf(leg media.Leg) Lags {
	n, ok := leg.(*narrow)
	if !ok {
		return Lags{}
	}
	sample := time.Second / time.Duration(n.Leg.Rate())
	return Lags{Said: media.FrameTime - split*sample, Sent: media.FrameTime, Heard: downed * sample}
}
