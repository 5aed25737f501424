package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// Lags are the delays of a leg's audio relative to its frames. The benchmark's resampling adds to
// all of them. The delay of the codec counts as part of the measured system.
type Lags struct {
	Said  time.Duration // delay when the codec gets the audio
	Sent  time.Duration // delay when the packet leaves
	Heard time.Duration // delay after decoding
}

// Delays of a wideband leg in samples: resampling of lines, resampling of received audio
// (media/resample), and band split of G.722.
const upped, downed, split = 31, 32, 11

func lagsOf(leg media.Leg) Lags {
	n, ok := leg.(*narrow)
	if !ok {
		return Lags{}
	}
	sample := time.Second / time.Duration(n.Leg.Rate())
	return Lags{Said: media.FrameTime - split*sample, Sent: media.FrameTime, Heard: downed * sample}
}
