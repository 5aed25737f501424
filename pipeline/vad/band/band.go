// Package band looks at a frame in six bands of the telephone's spectrum and
// weighs speech against anything else, by two mixtures of Gaussians over what
// stands out of the line's noise there.
package band

import (
	"math"

	"github.com/parley-voice/parley/media"
)

const (
	bands     = 6
	quiet     = -60.0 // dBFS: a band below this is as good as silent
	believed  = -46.0 // dBFS: a band's floor above this is not believed before it has lasted
	stretches = 8     // whose minima are remembered
	stretch   = 13    // frames in a stretch
	hush      = -58.0 // dBFS at which a frame is not looked at
	gate      = 2.5   // dB over the floor under which nothing is looked at
	// Window is how many frames the line's noise is followed over.
	Window = stretches * stretch
)

// Dims is how many features a frame has.
const Dims = bands + 3

// Features are what the model weighs: how far each band stands above its noise
// floor, how far the level of the last two seconds stands above its own floor,
// how far this frame stands above the former, and how fast the bands change.
// All in dB.
type Features [Dims]float32

// An Analyzer follows one stream. Its zero value is ready. It belongs to one
// goroutine and allocates nothing.
//
// The floors are the least of the last two seconds, for speech that long has
// pauses in it (R. Martin, "Noise power spectral density estimation based on
// optimal smoothing and minimum statistics", 2001).
type Analyzer struct {
	fft    fft
	minima [stretches][bands + 1]float32 // dBFS; the last one of the whole frame
	sums   [stretches]float32            // of the level, dB
	counts [stretches]float32
	frames int
	before [2][bands]float32 // of the last two frames
	flux   float32           // smoothed change of the bands, dB
}

// Frame takes a frame of level (dBFS), of 160 or 320 samples, and returns what
// is to be told of it, if it stands above the noise of the line at all. Of
// frames that do not, the bands of every fourth are followed: that is enough,
// and costs little.
func (a *Analyzer) Frame(f media.Frame, level float64) (x Features, above bool) {
	if level <= hush {
		a.follow(&[bands]float32{quiet, quiet, quiet, quiet, quiet, quiet}, quiet)
		return x, false
	}
	l := float32(level)
	above = l > a.floor(bands)+gate
	if !above && a.frames%4 != 0 {
		a.follow(&a.before[0], l)
		return x, false
	}
	e := a.fft.bands(f)
	a.follow(&e, l)
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

// floor is the noise of a band, or of the whole frame, in dBFS.
func (a *Analyzer) floor(b int) float32 {
	least := float32(0)
	if a.frames <= Window {
		least = believed
	}
	for i := range min(stretches, (a.frames+stretch-1)/stretch) {
		least = min(least, a.minima[i][b])
	}
	return least
}

// follow takes the levels of a frame and of its bands into the account of the
// noise.
func (a *Analyzer) follow(e *[bands]float32, level float32) {
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
		flux += max(v-a.before[1][b], a.before[1][b]-v) / bands
	}
	m[bands] = min(m[bands], level)
	a.sums[at] += level
	a.counts[at]++
	a.flux += 0.3 * (flux - a.flux)
	a.before[1], a.before[0] = a.before[0], *e
}

// decibels of a power; silence is quiet.
func decibels(p float64) float32 {
	if p < 1e-6 { // 10^(quiet/10)
		return quiet
	}
	return float32(10 * math.Log10(p))
}
