// Package resample changes the sample rate of a stream with a polyphase low-pass filter: a windowed sinc (Kaiser, β =
// 8) of 32 taps per phase.
package resample

import (
	"math"
	"slices"
)

const (
	tapsPerPhase = 32
	beta         = 8.0
	passband     = 0.92 // end of the passband, relative to the lower of the two Nyquist frequencies
)

// Resampler converts one stream. It must be used by one goroutine only.
type Resampler struct {
	up, down int
	phases   [][]float32 // filter taps for each phase, oldest sample first
	recent   []float32   // input samples that the next output needs
	phase    int
}

// New returns a Resampler that converts from one sample rate to another, both in Hz.
func New(from, to int) *Resampler {
	d := gcd(from, to)
	r := &Resampler{up: to / d, down: from / d}
	taps, cutoff := tapsPerPhase, passband/2
	if to < from { // the output has the lower Nyquist frequency
		taps = tapsPerPhase * from / to
		cutoff = cutoff * float64(to) / float64(from)
	}
	r.phases = design(r.up, taps, cutoff)
	r.recent = make([]float32, taps-1)
	return r
}

// design returns the phases of a low-pass filter. cutoff is relative to the input rate.
func design(up, taps int, cutoff float64) [][]float32 {
	n := up * taps
	middle := float64(n-1) / 2
	phases := make([][]float32, up)
	for p := range phases {
		row := make([]float32, taps)
		sum := 0.0
		h := make([]float64, taps)
		for k := range taps {
			x := (float64(p+k*up) - middle) / float64(up)
			w := (float64(p+k*up) - middle) / (middle + 1)
			h[k] = sinc(2*cutoff*x) * bessel(beta*math.Sqrt(1-w*w))
			sum += h[k]
		}
		for k := range taps {
			row[taps-1-k] = float32(h[k] / sum) // scales each phase to a gain of 1
		}
		phases[p] = row
	}
	return phases
}

// Resample converts the next part of the stream and appends the result to dst.
func (r *Resampler) Resample(dst, pcm []int16) []int16 {
	for _, x := range pcm {
		r.recent = append(r.recent, float32(x))
	}
	taps := len(r.phases[0])
	at := 0
	for at+taps <= len(r.recent) {
		dst = append(dst, dot(r.phases[r.phase], r.recent[at:at+taps]))
		r.phase += r.down
		at += r.phase / r.up
		r.phase %= r.up
	}
	at = min(at, len(r.recent))
	r.recent = r.recent[:copy(r.recent, r.recent[at:])]
	return dst
}

func dot(h, x []float32) int16 {
	var sum float32
	for i, c := range h {
		sum += c * x[i]
	}
	return int16(math.RoundToEven(float64(max(-32768, min(32767, sum)))))
}

// PCM converts a complete recording.
func PCM(pcm []int16, from, to int) []int16 {
	if from == to {
		return pcm
	}
	r := New(from, to)
	delay := len(r.phases[0]) / 2
	out := r.Resample(nil, append(slices.Clip(pcm), make([]int16, delay)...))
	return out[min(len(out), delay*to/from):]
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// bessel returns the modified Bessel function of the first kind and order zero at x.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
