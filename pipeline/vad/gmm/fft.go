package gmm

import (
	"math"
	"math/bits"

	"github.com/parley-voice/parley/media"
)

// maxLength is the transform length at 16 kHz; at 8 kHz it is half.
const maxLength = 512

// An fft is a fast Fourier transform in fixed memory. It prepares itself for the length of the frame.
type fft struct {
	n      int                  // samples per frame; 0 before the first frame
	window [320]float32         // Hann window of power 1
	turn   [maxLength]complex64 // roots of unity
	order  [maxLength / 2]uint8 // bit-reversed index of each input
	work   [maxLength / 2]complex64
}

// edges returns the band limits in Hz. The lowest is the effective limit of telephone
// lines.
func edges() [bands + 1]float64 { return [bands + 1]float64{100, 300, 600, 1000, 1700, 2600, 4000} }

func (t *fft) prepare(n int) {
	t.n = n
	size := t.size()
	var power float64
	for i := range n {
		w := 0.5 - 0.5*math.Cos(2*math.Pi*(float64(i)+0.5)/float64(n))
		t.window[i], power = float32(w), power+w*w
	}
	g := float32(math.Sqrt(1/(power*float64(size)))) / 32768
	g *= float32(math.Sqrt(float64(size))) // so that the bins add up to the mean square of the frame
	for i := range n {
		t.window[i] *= g
	}
	for i := range size {
		s, c := math.Sincos(-2 * math.Pi * float64(i) / float64(size))
		t.turn[i] = complex(float32(c), float32(s))
	}
	for i := range size / 2 {
		t.order[i] = bits.Reverse8(uint8(i)) >> (8 - bits.Len(uint(size/2-1)))
	}
}

func (t *fft) size() int {
	if t.n <= maxLength/2 {
		return maxLength / 2
	}
	return maxLength
}

// bands returns the level of each band in dBFS.
func (t *fft) bands(f media.Frame) [bands]float32 {
	if t.n != min(len(f), len(t.window)) {
		t.prepare(min(len(f), len(t.window)))
	}
	size := t.size()
	half := size / 2
	t.load(f, half)
	t.transform(half)
	var e [bands]float32
	rate := float64(t.n) * 50
	lim := edges()
	for b := range e {
		from := int(math.Ceil(lim[b] / rate * float64(size)))
		to := min(half, int(math.Ceil(lim[b+1]/rate*float64(size))))
		var p float64
		for k := from; k < to; k++ {
			p += t.power(k, half)
		}
		e[b] = decibels(2 * p / float64(size))
	}
	return e
}

// load packs the windowed frame, two samples per complex number, in bit-reversed order.
func (t *fft) load(f media.Frame, half int) {
	f = f[:t.n]
	w := t.window[:len(f)]
	for i, to := range t.order[:half] {
		var re, im float32
		if at := 2 * i; at+1 < len(f) {
			re, im = float32(f[at])*w[at], float32(f[at+1])*w[at+1]
		}
		t.work[to] = complex(re, im)
	}
}

// transform performs the radix-2 butterflies. The first round needs no multiplication.
func (t *fft) transform(half int) {
	x := t.work[:half]
	for at := 0; at+1 < len(x); at += 2 {
		x[at], x[at+1] = x[at]+x[at+1], x[at]-x[at+1]
	}
	for span := 2; span < half; span *= 2 {
		step := half / span // step within turn, which has the roots of the double length
		for at := 0; at < half; at += 2 * span {
			lo, hi := x[at:at+span], x[at+span:at+2*span]
			for k := range lo {
				v := multiply(hi[k], t.turn[k*step])
				lo[k], hi[k] = lo[k]+v, lo[k]-v
			}
		}
	}
}

// power returns the power of bin k of the transform of the frame. It unpacks the bin from two bins of work.
func (t *fft) power(k, half int) float64 {
	a, b := t.work[k&(half-1)], t.work[(half-k)&(half-1)]
	b = complex(real(b), -imag(b))
	even := complex((real(a)+real(b))/2, (imag(a)+imag(b))/2)
	odd := complex((imag(a)-imag(b))/2, (real(b)-real(a))/2)
	z := even + multiply(odd, t.turn[k])
	return float64(real(z))*float64(real(z)) + float64(imag(z))*float64(imag(z))
}

// multiply multiplies in single precision, unlike the operator *.
func multiply(a, b complex64) complex64 {
	return complex(real(a)*real(b)-imag(a)*imag(b), real(a)*imag(b)+imag(a)*real(b))
}
