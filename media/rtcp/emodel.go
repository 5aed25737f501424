package rtcp

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	unimpairedR         = 93.2  // rating R of an unimpaired narrowband call
	delayKnee           = 177.3 // delay in ms above which the impairment grows faster
	totalLossImpairment = 95.0  // impairment if all packets are lost
)

// robustness returns Bpl, the robustness of a codec against random loss (G.113). G.711 with concealment has the value
// of the standard. G.722 is rated on the narrowband scale without a wideband bonus. It gets half the value of G.711,
// because the state of its decoder is wrong after a loss.
func robustness(codec string) float64 {
	if strings.EqualFold(codec, "G722") {
		return 12.5
	}
	return 25.1
}

// MOS estimates the mean opinion score, 1 to 4.5, with the E-model of ITU-T G.107. lost is the share of lost packets,
// 0 to 1; delay is the one-way delay. All other parameters have their defaults.
func MOS(codec string, lost float64, delay time.Duration) float64 {
	percent := 100 * max(0, min(1, lost))
	ms := max(0, float64(delay)/float64(time.Millisecond))
	r := unimpairedR - 0.024*ms - totalLossImpairment*percent/(percent+robustness(codec))
	if ms > delayKnee {
		r -= 0.11 * (ms - delayKnee)
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

// StreamMOS returns the MOS of one direction, or 0 if no packet was received. late is the number of late packets, which
// count as lost. The assumed delay is the sum of half the round trip, one packet, and a buffer of twice the jitter.
func StreamMOS(codec string, s media.DirectionQuality, late int64, trip time.Duration) float64 {
	all := s.Packets + s.Lost
	if s.Packets == 0 || all == 0 {
		return 0
	}
	lost := float64(s.Lost+late) / float64(all)
	return MOS(codec, lost, trip/2+media.FrameTime+2*s.Jitter)
}
