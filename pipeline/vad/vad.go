// Package vad detects speech per frame: an adaptive energy gate followed by a model of the
// spectral bands.
package vad

import (
	"math"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/vad/gmm"
)

// Parameters of voiced frames.
const (
	minLevel      = -50.0 // dBFS; quieter frames are never speech
	beliefDecay   = 0.6   // factor by which the belief decreases per frame
	maxBelief     = 6.0   // maximum belief, as a log ratio
	startBelief   = 1.0   // belief needed to start speech
	stayBelief    = -1.0  // belief needed to continue speech
	silenceLevel  = -58.0 // dBFS of a silent line
	silenceFrames = 5     // frames of a silent line after which any new sound counts as speech
	freshFrames   = 5     // frames after line silence in which all sound that passes the gate counts as speech
)

// Timing of the verdicts.
const (
	onsetFrames  = 3 // number of voiced frames among the last four that starts speech
	hangoverTime = 160 * time.Millisecond
)

// Hangover is the silence that ends speech.
const Hangover = hangoverTime

// A Verdict is the change caused by a frame.
type Verdict uint8

// Verdicts.
const (
	NoChange    Verdict = iota
	SpeechStart         // speech has started with the first voiced frame of the last four
	SpeechEnd           // speech has ended with the last voiced frame
	// Onset is the first sign of speech: two successive voiced frames. SpeechStart or OnsetDropped
	// follows. Speech that begins with a gap may start without it.
	Onset
	OnsetDropped // the onset was not speech
)

// A Detector processes one stream. The zero value is ready to use. It is for one goroutine
// and allocates nothing.
type Detector struct {
	bands      gmm.Analyzer
	model      *gmm.Model
	floor      float64 // dBFS; quieter frames do not count as voiced
	hasFloor   bool
	level      float64 // dBFS of the last frame
	belief     float64 // log ratio that this and earlier frames are speech, decaying with time
	silentLine int     // successive frames of a silent line
	fresh      int     // number of further frames in which any sound counts as speech
	history    uint8   // voiced flags of the last frames, newest in the lowest bit
	onset      bool
	speaking   bool
	unvoiced   int // number of frames since the last voiced one
	loud       int // voiced frames since speech began
}

// Frame takes the next frame of the stream: 160 samples at 8 kHz or 320 at 16 kHz. back is
// the distance in frames to the edge of the verdict: the first voiced frame for
// SpeechStart and Onset, the last one for SpeechEnd; 0 is this frame.
func (d *Detector) Frame(f media.Frame) (v Verdict, back int) {
	d.history <<= 1
	if d.voiced(f) {
		d.history |= 1
		d.unvoiced = 0
		d.loud++
	} else {
		d.unvoiced++
	}
	recent := d.history & 0xf
	switch {
	case d.speaking && time.Duration(d.unvoiced)*media.FrameTime >= hangoverTime:
		d.speaking = false
		return SpeechEnd, d.unvoiced
	case d.speaking:
		return NoChange, 0
	case d.Voiced() && ones(recent) >= onsetFrames:
		d.speaking, d.onset, d.loud = true, false, ones(recent)
		return SpeechStart, highestBit(recent)
	case !d.onset && recent&3 == 3:
		d.onset = true
		return Onset, highestBit(recent)
	case d.onset && recent&3 == 0:
		d.onset = false
		return OnsetDropped, 0
	default:
		return NoChange, 0
	}
}

// SetFloor sets the level (dBFS) below which frames do not count as voiced, such as the
// level of an echo. Negative infinity, the initial value, disables it.
func (d *Detector) SetFloor(dbfs float64) {
	d.floor, d.hasFloor = dbfs, !math.IsInf(dbfs, -1) && !math.IsNaN(dbfs)
}

// Level returns the RMS of the last frame in dBFS, at least -120.
func (d *Detector) Level() float64 { return d.level }

// Voiced reports whether the last frame was voiced.
func (d *Detector) Voiced() bool { return d.history&1 == 1 }

// Loud returns the voiced duration of the current speech.
func (d *Detector) Loud() time.Duration { return time.Duration(d.loud) * media.FrameTime }

// Speaking reports whether the stream is within speech.
func (d *Detector) Speaking() bool { return d.speaking }

// voiced updates the noise and speech estimates and reports whether f is voiced.
func (d *Detector) voiced(f media.Frame) bool {
	d.level = level(f)
	x, above := d.bands.Frame(f, d.level)
	d.fresh = max(0, d.fresh-1)
	if d.level <= silenceLevel {
		d.silentLine++
	} else if d.silentLine >= silenceFrames {
		d.silentLine, d.fresh = 0, freshFrames
	} else {
		d.silentLine = 0
	}
	if !above || d.level <= minLevel || d.hasFloor && d.level < d.floor {
		d.belief = min(d.belief, 0) * beliefDecay
		return false
	}
	if d.model == nil {
		d.model = gmm.Default()
	}
	d.belief = max(-maxBelief, min(d.belief*beliefDecay+d.model.Ratio(&x), maxBelief))
	switch {
	case d.speaking:
		return d.belief > stayBelief
	case d.fresh > 0:
		return true
	default:
		return d.belief > startBelief
	}
}

// level returns the RMS of f in dBFS.
func level(f media.Frame) float64 {
	var sum int64
	for _, x := range f {
		sum += int64(x) * int64(x)
	}
	return decibels(float64(sum), len(f))
}

// decibels returns the RMS in dBFS, at least -120, of n samples with the given sum of
// squares.
func decibels(sum float64, n int) float64 {
	if sum == 0 {
		return -120
	}
	return max(-120, 10*math.Log10(sum/float64(n)/(32768*32768)))
}

func ones(b uint8) int {
	n := 0
	for ; b != 0; b &= b - 1 {
		n++
	}
	return n
}

func highestBit(b uint8) int {
	n := -1
	for ; b != 0; b >>= 1 {
		n++
	}
	return n
}
