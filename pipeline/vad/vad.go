// Package vad tells speech from silence, frame by frame, by an energy gate
// that follows the noise of the line.
package vad

import (
	"math"
	"time"

	"github.com/parley-voice/parley/media"
)

// The gate. The noise floor is the quietest frame of the last two seconds or so,
// for speech that long has pauses in it (R. Martin, "Noise power spectral density
// estimation based on optimal smoothing and minimum statistics", 2001).
const (
	quietest   = -50.0 // dBFS under which nothing is speech
	loudest    = -40.0 // dBFS: a floor above this is not believed before it has lasted
	above      = 9.0   // dB over the floor that speech must be
	stretches  = 8     // whose minima are remembered
	stretchLen = 13    // frames in a stretch
)

// Times of the verdicts.
const (
	onsetFrames  = 3 // voiced frames out of the last four that begin speech
	hangoverTime = 180 * time.Millisecond
)

// Hangover is how long silence must last until it is the end of speech.
const Hangover = hangoverTime

// A Verdict is what a frame changed.
type Verdict uint8

// Verdicts.
const (
	Same  Verdict = iota
	Began         // speech began with the first of the last four frames that is voiced
	Ended         // speech ended with the last voiced frame
)

// A Detector listens to one stream. Its zero value is ready. It belongs to one
// goroutine and allocates nothing.
type Detector struct {
	minima   [stretches]float64 // dBFS, 0 where not filled yet
	frames   int
	history  uint8 // the last frames, one bit each, newest lowest: voiced or not
	speaking bool
	silent   int // frames since the last voiced one
	loud     int // voiced frames since speech began
}

// Frame takes the next frame of the stream. back is how many frames ago the
// edge was that the verdict is about: for Began the first voiced frame, for
// Ended the last one, 0 being this frame.
func (d *Detector) Frame(f media.Frame) (v Verdict, back int) {
	voiced := d.voiced(level(f))
	d.history = d.history << 1
	if voiced {
		d.history |= 1
		d.silent = 0
		d.loud++
	} else {
		d.silent++
	}
	switch {
	case !d.speaking && voiced && ones(d.history&0xf) >= onsetFrames:
		d.speaking, d.loud = true, ones(d.history&0xf)
		return Began, oldest(d.history & 0xf)
	case d.speaking && time.Duration(d.silent)*media.FrameTime >= hangoverTime:
		d.speaking = false
		return Ended, d.silent
	default:
		return Same, 0
	}
}

// Loud is how much of the speech that is on was voiced so far.
func (d *Detector) Loud() time.Duration { return time.Duration(d.loud) * media.FrameTime }

// Speaking tells whether the stream is inside speech.
func (d *Detector) Speaking() bool { return d.speaking }

func (d *Detector) voiced(db float64) bool {
	at := d.frames / stretchLen % stretches
	if d.frames%stretchLen == 0 {
		d.minima[at] = db
	}
	d.frames++
	d.minima[at] = min(d.minima[at], db)
	floor := loudest
	if d.frames > stretches*stretchLen {
		floor = 0 // known by now, however loud the line
	}
	for _, m := range d.minima {
		floor = min(floor, m)
	}
	return db > max(quietest, floor+above)
}

// level is the root mean square of f in dBFS.
func level(f media.Frame) float64 {
	var sum float64
	for _, x := range f {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return -120
	}
	return 10 * math.Log10(sum/float64(len(f))/(32768*32768))
}

func ones(b uint8) int {
	n := 0
	for ; b != 0; b &= b - 1 {
		n++
	}
	return n
}

// oldest is the place of the highest bit set.
func oldest(b uint8) int {
	n := -1
	for ; b != 0; b >>= 1 {
		n++
	}
	return n
}
