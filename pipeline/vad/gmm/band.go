// Package gmm classifies frames as speech or other sound. It measures the levels of six
// telephone bands above the line's noise floor and compares two Gaussian mixtures over
// them.
package gmm

import (
	"math"

	"github.com/parley-voice/parley/media"
)

const (
	bands         = 6
	quiet         = -60.0 // dBFS; a band below this counts as silent
	maxEarlyFloor = -46.0 // dBFS; a higher noise floor is not accepted in the first 2 s
	stretches     = 8     // number of minima that are kept
	stretch       = 13    // frames per minimum
	silenceLevel  = -58.0 // dBFS; quieter frames are not analyzed
	gate          = 2.5   // dB above the noise floor from which frames are analyzed
	// Window is the number of frames over which the noise floor is tracked.
	Window = stretches * stretch
)

// Dims is the number of features per frame.
const Dims = bands + 3

// Features are the inputs of the model in dB: each band above its noise floor, the mean
// level of the last 2 s above its floor, this frame above that mean, and the rate of
// change of the bands.
type Features [Dims]float32

// An Analyzer tracks one stream. The zero value is ready to use. It is for one goroutine
// and allocates nothing.
//
// The noise floors are the minima of the last 2 s, as speech of that length contains
// pauses (R. Martin, "Noise power spectral density estimation based on optimal smoothing
// and minimum statistics", 2001).
type Analyzer struct {
	fft      fft
	minima   [stretches][bands + 1]float32 // dBFS; the last entry is the whole frame
	sums     [stretches]float32            // sums of levels in dB
	counts   [stretches]float32
	frames   int
	previous [2][bands]float32 // bands of the last two frames
	flux     float32           // smoothed change of the bands, dB
}

// Frame takes a frame of 160 or 320 samples and its level (dBFS). It returns the features if
// the frame stands out from the noise. Of the other frames it analyzes only every fourth, to
// save time.
func (a *Analyzer) Frame(f media.Frame, level float64) (x Features, above bool) {
	if level <= silenceLevel {
		a.track(&[bands]float32{quiet, quiet, quiet, quiet, quiet, quiet}, quiet)
		return x, false
	}
	l := float32(level)
	above = l > a.floor(bands)+gate
	if !above && a.frames%4 != 0 {
		a.track(&a.previous[0], l)
		return x, false
	}
	e := a.fft.bands(f)
	a.track(&e, l)
	if !above {
		return x, false
	}
	var sum, count float32
	for i := range stretches {
		sum, count = sum+a.sums[i], count+a.counts[i]
	}
	for b := range bands {
		x[b] = min(e[b]-a.floor(b), 40)
	}
	mean := sum / count
	x[bands] = min(mean-a.floor(bands), 40)
	x[bands+1] = max(-30, min(l-mean, 30))
	x[bands+2] = min(a.flux, 15)
	return x, true
}

// floor returns the noise floor of a band, or of the whole frame, in dBFS.
func (a *Analyzer) floor(b int) float32 {
	least := float32(0)
	if a.frames <= Window {
		least = maxEarlyFloor
	}
	for i := range min(stretches, (a.frames+stretch-1)/stretch) {
		least = min(least, a.minima[i][b])
	}
	return least
}

// track updates the noise floor with the levels of a frame and its bands.
func (a *Analyzer) track(e *[bands]float32, level float32) {
	at := a.frames / stretch % stretches
	m := &a.minima[at]
	if a.frames%stretch == 0 {
		copy(m[:], e[:])
		m[bands] = level
		a.sums[at], a.counts[at] = 0, 0
	}
	a.frames++
	var flux float32
	for b, v := range e {
		m[b] = min(m[b], v)
		flux += max(v-a.previous[1][b], a.previous[1][b]-v) / bands
	}
	m[bands] = min(m[bands], level)
	a.sums[at] += level
	a.counts[at]++
	a.flux += 0.3 * (flux - a.flux)
	a.previous[1], a.previous[0] = a.previous[0], *e
}

// decibels converts a power to dB, at least quiet.
func decibels(p float64) float32 {
	if p < 1e-6 { // 10^(quiet/10)
		return quiet
	}
	return float32(10 * math.Log10(p))
}
