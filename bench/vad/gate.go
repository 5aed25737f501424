package vad

import (
	"math/bits"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/vad"
)

// A gate is an energy gate, which is measured for comparison. It detects speech at 9 dB above the
// minimum level of the last two seconds.
type gate struct {
	minima   [8]float64
	frames   int
	history  uint8
	speaking bool
	silent   int
}

// Frame implements detector.
func (g *gate) Frame(f media.Frame) (vad.Verdict, int) {
	g.history <<= 1
	if g.voiced(tone.Level(f)) {
		g.history |= 1
		g.silent = 0
	} else {
		g.silent++
	}
	recent := g.history & 0xf
	switch {
	case !g.speaking && recent&1 == 1 && bits.OnesCount8(recent) >= 3:
		g.speaking = true
		return vad.SpeechStart, bits.Len8(recent) - 1
	case g.speaking && g.silent >= 9:
		g.speaking = false
		return vad.SpeechEnd, g.silent
	default:
		return vad.NoChange, 0
	}
}

func (g *gate) voiced(db float64) bool {
	at := g.frames / 13 % len(g.minima)
	if g.frames%13 == 0 {
		g.minima[at] = db
	}
	g.frames++
	g.minima[at] = min(g.minima[at], db)
	floor := -40.0
	if g.frames > 13*len(g.minima) {
		floor = 0
	}
	for _, m := range g.minima {
		floor = min(floor, m)
	}
	return db > max(-50, floor+9)
}
