// Package vad tells speech from silence and from noise, frame by frame: a gate
// of energy that follows the line, and behind it a model of the bands of the
// spectrum.
package vad

import (
	"math"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/vad/band"
)

// What is voiced.
const (
	quietest  = -50.0 // dBFS under which nothing is speech
	fading    = 0.6   // what a frame leaves of the belief
	most      = 6.0   // that is believed, as a log ratio
	sure      = 1.0   // how much speech must be believed to begin
	holding   = -1.0  // the same while it is on
	hush      = -58.0 // dBFS of a line on which nothing is to be heard
	hushes    = 5     // frames of hush that tell
	freshness = 6     // frames after a hush in which any sound is taken for speech
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
	// Stirred is the first sign of speech: two voiced frames in a row. Began or
	// Calmed follows. Speech with a hole in it begins without.
	Stirred
	Calmed // what stirred came to nothing
)

// A Detector listens to one stream. Its zero value is ready. It belongs to one
// goroutine and allocates nothing.
type Detector struct {
	bands    band.Analyzer
	model    *band.Model
	bound    float64 // dBFS under which nothing counts
	bounded  bool
	level    float64 // dBFS of the last frame
	belief   float64 // that this is speech, as a log ratio, of this frame and faded ones
	hushed   int     // frames of a line without any sound, up to now
	fresh    int     // frames in which what broke the hush is taken for speech
	history  uint8   // the last frames, one bit each, newest lowest: voiced or not
	stirred  bool
	speaking bool
	silent   int // frames since the last voiced one
	loud     int // voiced frames since speech began
}

// Frame takes the next frame of the stream, 160 samples at 8 kHz or 320 at
// 16 kHz. back is how many frames ago the edge was that the verdict is about:
// for Began and Stirred the first voiced frame, for Ended the last one, 0 being
// this frame.
func (d *Detector) Frame(f media.Frame) (v Verdict, back int) {
	d.history <<= 1
	if d.voiced(f) {
		d.history |= 1
		d.silent = 0
		d.loud++
	} else {
		d.silent++
	}
	recent := d.history & 0xf
	switch {
	case d.speaking && time.Duration(d.silent)*media.FrameTime >= hangoverTime:
		d.speaking = false
		return Ended, d.silent
	case d.speaking:
		return Same, 0
	case d.Voiced() && ones(recent) >= onsetFrames:
		d.speaking, d.stirred, d.loud = true, false, ones(recent)
		return Began, oldest(recent)
	case !d.stirred && recent&3 == 3:
		d.stirred = true
		return Stirred, oldest(recent)
	case d.stirred && recent&3 == 0:
		d.stirred = false
		return Calmed, 0
	default:
		return Same, 0
	}
}

// Floor sets the level (dBFS) under which frames do not count as voiced, until
// it is set again: what comes back of our own voice, say. Negative infinity is
// none, as at the beginning.
func (d *Detector) Floor(dbfs float64) {
	d.bound, d.bounded = dbfs, !math.IsInf(dbfs, -1) && !math.IsNaN(dbfs)
}

// Level is the root mean square of the last frame in dBFS, -120 at least.
func (d *Detector) Level() float64 { return d.level }

// Voiced tells whether the last frame was.
func (d *Detector) Voiced() bool { return d.history&1 == 1 }

// Loud is how much of the speech that is on was voiced so far.
func (d *Detector) Loud() time.Duration { return time.Duration(d.loud) * media.FrameTime }

// Speaking tells whether the stream is inside speech.
func (d *Detector) Speaking() bool { return d.speaking }

// voiced follows the line and tells whether f is more than its noise.
func (d *Detector) voiced(f media.Frame) bool {
	d.level = level(f)
	x, above := d.bands.Frame(f, d.level)
	if d.level <= hush {
		d.hushed++
	} else if d.hushed >= hushes {
		d.hushed, d.fresh = 0, freshness
	} else {
		d.hushed = 0
	}
	d.fresh = max(0, d.fresh-1)
	if !above || d.level <= quietest || d.bounded && d.level < d.bound {
		d.belief = min(d.belief, 0) * fading
		return false
	}
	if d.model == nil {
		d.model = band.Fitted()
	}
	d.belief = max(-most, min(d.belief*fading+d.model.Ratio(&x), most))
	switch {
	case d.speaking:
		return d.belief > holding
	case d.fresh > 0:
		return true
	default:
		return d.belief > sure
	}
}

// level is the root mean square of f in dBFS.
func level(f media.Frame) float64 {
	var sum float64
	for _, x := range f {
		sum += float64(x) * float64(x)
	}
	return decibels(sum, len(f))
}

// decibels is the root mean square of n samples of which sum is that of the
// squares, in dBFS, -120 at least.
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

// oldest is the place of the highest bit set.
func oldest(b uint8) int {
	n := -1
	for ; b != 0; b >>= 1 {
		n++
	}
	return n
}
