// Package echo bounds what of the sound that comes in may be our own, come
// back: telephone legs have no echo canceller, and an agent that takes its echo
// for a caller interrupts itself. It is pure.
package echo

import "math"

const (
	kept     = 75    // frames that are compared: 1.5 s
	lags     = 20    // frames by which sound may come back late: 400 ms
	every    = 4     // frames between two comparisons
	spoken   = 8     // of them in which something was sent
	least    = 12    // frames of which something must be known
	alike    = 0.8   // correlation of the envelopes from which sound is an echo
	unlike   = 0.35  // correlation under which it is none
	sure     = 4     // comparisons in a row that must agree on the delay
	nearest  = -6.0  // dB of return over which sound is nobody's echo
	lively   = 3.0   // dB by which what was sent must vary for that to tell
	margin   = 5.0   // dB over the echo that was seen
	quiet    = -55.0 // dBFS under which nothing was sent
	speaking = -35.0 // dBFS over which what was sent tells how strongly it returns
	weakest  = -60.0 // dB of return under which no echo matters
	fading   = 4e-4  // dB a frame by which an echo that is not seen is forgotten
)

// A Bound learns how strongly a line returns what is sent. Its zero value knows
// of no echo. It belongs to one goroutine and allocates nothing.
type Bound struct {
	sent, heard [kept]float64
	frames      int
	gain        float64 // dB from what was sent to what came back
	known       bool
	sending     int // frames since something began to be sent
	strange     int // comparisons in a row that saw no echo
	lag, agreed int // the last comparison's delay in frames, and how many agreed on it
}

// Frame takes the levels (dBFS) of the frame that was sent and of the one that
// came in, and returns the level under which sound is no caller's; negative
// infinity where no echo is known.
func (b *Bound) Frame(sent, heard float64) float64 {
	b.sent[b.frames%kept], b.heard[b.frames%kept] = max(sent, quiet), max(heard, -80)
	b.frames++
	if b.sending++; b.loudest() <= quiet {
		b.sending = 0
	}
	if b.frames%every == 0 && b.frames >= least {
		b.learn()
	}
	if !b.known {
		return math.Inf(-1)
	}
	if b.gain -= fading; b.gain < weakest {
		b.known = false
	}
	loudest := b.loudest()
	if loudest <= quiet {
		return math.Inf(-1)
	}
	return loudest + b.gain + margin
}

// Known tells whether the line returns what is sent.
func (b *Bound) Known() bool { return b.known }

// learn compares what came in with what was sent before. Two who speak at once
// may look alike by chance, but not again and again at the same delay.
func (b *Bound) learn() {
	var e envelopes
	e.take(b)
	best, gain, at := e.closest()
	if best < alike || gain > nearest {
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
	case b.agreed < sure:
	case !b.known:
		b.gain, b.known = gain, true
	default:
		b.gain += (gain - b.gain) / 2
	}
}

// doubt forgets an echo where again and again what comes in is another's,
// although something was sent all the time that is compared.
func (b *Bound) doubt(best float64) {
	if b.sending < kept || best == 0 || best >= unlike {
		b.strange = 0
	} else if b.strange++; b.strange >= 2*sure {
		b.known = false
	}
}

// loudest is the level of the loudest frame sent that may come back now.
func (b *Bound) loudest() float64 {
	loudest := quiet
	for lag := range min(lags+1, b.frames) {
		loudest = max(loudest, b.sent[(b.frames-1-lag)%kept])
	}
	return loudest
}
