package echo

import (
	"math"
	"slices"
)

// envelopes are the levels (dBFS) of what was sent and of what came in, oldest
// first.
type envelopes struct {
	sent, heard [kept]float64
	n           int // of them that are known
}

// take puts the rings of b in order.
func (e *envelopes) take(b *Bound) {
	e.n = min(b.frames, kept)
	at := (b.frames - e.n) % kept
	for i := range e.n {
		e.sent[i], e.heard[i] = b.sent[at], max(b.heard[at], quiet-10)
		if at++; at == kept {
			at = 0
		}
	}
}

// closest returns the lag (frames) at which the envelopes are most alike, how
// alike they are there, 0 where nothing can be told, and how strongly what was
// sent returns then.
func (e *envelopes) closest() (best, gain float64, at int) {
	var x, y sums
	loud := 0
	for i := range e.n {
		x.add(e.sent[i])
		y.add(e.heard[i])
		if e.sent[i] > speaking {
			loud++
		}
	}
	heard := e.heard[:e.n]
	if loud < spoken || slices.Max(heard)-slices.Min(heard) < 2 { // no part of it varies by 1 dB
		return 0, 0, 0
	}
	for lag := range min(lags+1, e.n) {
		if lag > 0 {
			last := e.sent[e.n-lag]
			x.drop(last)
			y.drop(e.heard[lag-1])
			if last > speaking {
				loud--
			}
		}
		m := float64(e.n - lag)
		vx, vy := x.variance(m), y.variance(m)
		if loud < spoken || vx < lively*lively || vy < 1 {
			continue
		}
		if r := (e.product(lag)/m - x.sum/m*y.sum/m) / math.Sqrt(vx*vy); r > best {
			best, at = r, lag
		}
	}
	return best, e.gain(at), at
}

// product is the sum of the products of both envelopes at a lag.
func (e *envelopes) product(lag int) float64 {
	x, y := e.sent[:e.n-lag], e.heard[lag:e.n]
	var even, odd float64 // two sums: one would wait for itself
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

// gain is the strongest return at a lag, of the frames in which something was
// sent. A frame that comes back lies across two that were sent.
func (e *envelopes) gain(lag int) float64 {
	gain := 2 * weakest
	for i := range e.n - lag {
		if x := e.sent[i]; x > speaking {
			gain = max(gain, e.heard[i+lag]-max(x, e.sent[i+min(lag, 1)]))
		}
	}
	return gain
}

// sums are what the variance of an envelope is made of.
type sums struct{ sum, squares float64 }

func (s *sums) add(v float64) { s.sum, s.squares = s.sum+v, s.squares+v*v }

func (s *sums) drop(v float64) { s.sum, s.squares = s.sum-v, s.squares-v*v }

func (s *sums) variance(n float64) float64 { return s.squares/n - (s.sum/n)*(s.sum/n) }
