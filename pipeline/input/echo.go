package input

import "math"

const (
	echoFrames   = 75    // frames that are compared: 1.5 s
	echoLags     = 20    // longest delay of an echo in frames: 400 ms
	compareEvery = 4     // frames between comparisons
	minLoud      = 8     // minimum number of sent frames louder than speaking in a comparison
	minFrames    = 12    // minimum number of frames in a comparison
	minEcho      = 0.8   // envelope correlation at or above which input is echo
	maxOther     = 0.35  // correlation of the envelopes below which input is not echo
	minAgreed    = 4     // successive comparisons that must agree on the delay
	maxReturn    = -6.0  // largest return in dB; stronger input is not an echo
	minVariation = 3.0   // minimum variation of the sent level in a comparison, dB
	margin       = 5.0   // dB added to the level of the measured echo
	quiet        = -55.0 // dBFS; a quieter frame counts as silence
	speaking     = -35.0 // dBFS; a louder sent frame shows the strength of the echo
	minReturn    = -60.0 // smallest return in dB; a weaker echo is ignored
	decay        = 4e-4  // dB per frame by which a known echo decreases until it is confirmed again
)

// An echoBound learns how strongly a line returns the sent audio as echo. Telephone legs have no echo canceller, and
// an agent that takes its own echo for a caller interrupts itself. The zero value has no known echo. It is for one
// goroutine, does no I/O and allocates nothing.
type echoBound struct {
	sent, received [echoFrames]float64
	frames         int
	gain           float64 // dB from sent to returned audio
	known          bool
	sending        int // frames since sending began
	strange        int // number of successive comparisons without an echo
	lag, agreed    int // frames of delay in the last comparison; number of successive comparisons with about that delay
}

// Frame takes the levels (dBFS) of one sent and one received frame. It returns the level
// below which received sound is echo, or negative infinity if no echo is known.
func (b *echoBound) Frame(sent, heard float64) float64 {
	b.sent[b.frames%echoFrames], b.received[b.frames%echoFrames] = max(sent, quiet), max(heard, -80)
	b.frames++
	if b.sending++; b.loudest() <= quiet {
		b.sending = 0
	}
	if b.frames%compareEvery == 0 && b.frames >= minFrames {
		b.learn()
	}
	if !b.known {
		return math.Inf(-1)
	}
	if b.gain -= decay; b.gain < minReturn {
		b.known = false
	}
	loudest := b.loudest()
	if loudest <= quiet {
		return math.Inf(-1)
	}
	return loudest + b.gain + margin
}

// Known reports whether the line returns an echo.
func (b *echoBound) Known() bool { return b.known }

// learn compares received with sent audio. Two people speaking at once may correlate by
// chance, but not repeatedly at the same delay.
func (b *echoBound) learn() {
	var e envelopes
	e.take(b)
	best, gain, at := e.closest()
	if best < minEcho || gain > maxReturn {
		b.agreed = 0
		b.doubt(best)
		return
	}
	b.strange = 0
	if d := at - b.lag; d < -1 || d > 1 {
		b.agreed = 0
	}
	b.lag = at
	b.agreed++
	switch {
	case b.agreed < minAgreed:
	case !b.known:
		b.gain, b.known = gain, true
	default:
		b.gain += (gain - b.gain) / 2
	}
}

// doubt forgets the echo if comparisons over continuous sending find none.
func (b *echoBound) doubt(best float64) {
	if b.sending < echoFrames || best == 0 || best >= maxOther {
		b.strange = 0
	} else if b.strange++; b.strange >= 2*minAgreed {
		b.known = false
	}
}

// loudest returns the level of the loudest sent frame whose echo may arrive now.
func (b *echoBound) loudest() float64 {
	loudest := quiet
	for lag := range min(echoLags+1, b.frames) {
		loudest = max(loudest, b.sent[(b.frames-1-lag)%echoFrames])
	}
	return loudest
}
