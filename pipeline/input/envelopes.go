package input

import (
	"math"
	"slices"
)

// envelopes holds the levels (dBFS) of sent and received audio, oldest first.
type envelopes struct {
	sent, received [echoFrames]float64
	n              int // number of valid entries
}

// take copies the rings of b, oldest entry first.
func (e *envelopes) take(b *echoBound) {
	e.n = min(b.frames, echoFrames)
	at := (b.frames - e.n) % echoFrames
	for i := range e.n {
		e.sent[i], e.received[i] = b.sent[at], max(b.received[at], quiet-10)
		if at++; at == echoFrames {
			at = 0
		}
	}
}

// closest returns the correlation at the best lag, the strength of the echo there in dB, and
// the lag in frames. The correlation is 0 if nothing can be compared.
func (e *envelopes) closest() (best, gain float64, at int) {
	var x, y sums
	loud := 0
	for i := range e.n {
		x.add(e.sent[i])
		y.add(e.received[i])
		if e.sent[i] > speaking {
			loud++
		}
	}
	heard := e.received[:e.n]
	if loud < minLoud || slices.Max(heard)-slices.Min(heard) < 2 { // no part of the envelope varies by 1 dB
		return 0, 0, 0
	}
	for lag := range min(echoLags+1, e.n) {
		if lag > 0 {
			last := e.sent[e.n-lag]
			x.drop(last)
			y.drop(e.received[lag-1])
			if last > speaking {
				loud--
			}
		}
		m := float64(e.n - lag)
		vx, vy := x.variance(m), y.variance(m)
		if loud < minLoud || vx < minVariation*minVariation || vy < 1 {
			continue
		}
		if r := (e.product(lag)/m - x.sum/m*y.sum/m) / math.Sqrt(vx*vy); r > best {
			best, at = r, lag
		}
	}
	return best, e.gain(at), at
}

// product returns the sum of the products of both envelopes at a lag.
func (e *envelopes) product(lag int) float64 {
	x, y := e.sent[:e.n-lag], e.received[lag:e.n]
	var even, odd float64 // two sums, because additions into a single one cannot run in parallel
	i := 0
	for ; i+1 < len(x) && i+1 < len(y); i += 2 {
		even += x[i] * y[i]
		odd += x[i+1] * y[i+1]
	}
	if i < len(x) && i < len(y) {
		even += x[i] * y[i]
	}
	return even + odd
}

// gain returns the strength of the loudest echo at a lag, in dB, over the frames in which speech was sent. A returned
// frame overlaps two sent frames.
func (e *envelopes) gain(lag int) float64 {
	gain := 2 * minReturn
	for i := range e.n - lag {
		if x := e.sent[i]; x > speaking {
			gain = max(gain, e.received[i+lag]-max(x, e.sent[i+min(lag, 1)]))
		}
	}
	return gain
}

// sums accumulates the variance of an envelope.
type sums struct{ sum, squares float64 }

func (s *sums) add(v float64) { s.sum, s.squares = s.sum+v, s.squares+v*v }

func (s *sums) drop(v float64) { s.sum, s.squares = s.sum-v, s.squares-v*v }

func (s *sums) variance(n float64) float64 { return s.squares/n - (s.sum/n)*(s.sum/n) }
