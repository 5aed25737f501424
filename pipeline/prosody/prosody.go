// Package prosody hears how a stretch of speech ends: whether its melody falls
// and its voice trails off, as at the end of a turn, or stays up.
package prosody

import (
	"math"
	"slices"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/eot"
)

const (
	rate      = 4000 // Hz at which pitch is looked for
	perFrame  = rate / 50
	window    = 2 * perFrame
	longest   = rate / 60  // lag of the lowest voice, 60 Hz
	shortest  = rate / 400 // lag of the highest, 400 Hz
	periodic  = 0.5        // correlation from which sound has a pitch
	kept      = 256        // frames of a stretch that are looked back on: 5 s
	lastPitch = 15         // frames at the end whose pitch tells: 300 ms
	lastLevel = 10         // and whose level tells: 200 ms
	enough    = 8          // frames with a pitch that a stretch must have
	enoughEnd = 3          // and its end
)

// An Estimator follows one stream. Its zero value is ready. It belongs to one
// goroutine and allocates nothing.
type Estimator struct {
	recent [window + longest]float32 // of the stream, brought down to rate
	pitch  [kept]float64             // semitones over 1 Hz, 0 where there is none
	level  [kept]float64             // dBFS
	heard  int                       // frames since Begin
	end    int                       // of them, up to the last voiced one
	sorted [kept]float64
}

// Begin forgets the stretch before: speech begins.
func (e *Estimator) Begin() { e.heard, e.end = 0, 0 }

// Frame takes a frame of 160 or 320 samples, its level (dBFS), and whether it
// is voiced. Frames that are not cost next to nothing.
func (e *Estimator) Frame(f media.Frame, level float64, voiced bool) {
	e.take(f)
	at := e.heard % kept
	e.heard++
	e.pitch[at], e.level[at] = 0, level
	if !voiced {
		return
	}
	e.end = e.heard
	if e.heard%2 == 0 { // a melody is slower than frames
		e.pitch[at] = e.find()
	}
}

// take brings the frame down to 4 kHz by averaging.
func (e *Estimator) take(f media.Frame) {
	copy(e.recent[:], e.recent[perFrame:])
	fresh := e.recent[len(e.recent)-perFrame:]
	n := len(f) / perFrame
	for i := range fresh {
		var sum int
		for _, x := range f[i*n : (i+1)*n] {
			sum += int(x)
		}
		fresh[i] = float32(sum) / float32(max(1, n))
	}
}

// find returns the pitch of the last two frames in semitones over 1 Hz, by the
// highest peak of the normalized correlation (A. de Cheveigné and H. Kawahara,
// "YIN", 2002, say why the shortest of the peaks nearly as high is the pitch).
func (e *Estimator) find() float64 {
	x := e.recent[longest:]
	var own float32
	for _, v := range x {
		own += v * v
	}
	if own == 0 {
		return 0
	}
	var r [longest + 1]float64
	best := 0.0
	var other float32 // power of the stretch that is compared, which moves back by a sample a lag
	for _, v := range e.recent[longest-shortest+2:][:window] {
		other += v * v
	}
	for lag := shortest - 1; lag <= longest; lag++ {
		y := e.recent[longest-lag:][:window]
		other = max(0, other+y[0]*y[0]-e.recent[longest-lag+window]*e.recent[longest-lag+window])
		r[lag] = float64(product(x, y)) / math.Sqrt(float64(own)*float64(other)+1)
		best = max(best, r[lag])
	}
	if best < periodic {
		return 0
	}
	for lag := shortest; lag < longest; lag++ {
		a, b, c := r[lag-1], r[lag], r[lag+1]
		if b < 0.85*best || b < a || b < c {
			continue
		}
		exact := float64(lag)
		if d := a - 2*b + c; d < 0 {
			exact += 0.5 * (a - c) / d
		}
		return 12 * math.Log2(rate/exact)
	}
	return 0
}

// product is the sum of the products of x and y, which are of one length. Four
// sums are quicker than one, which would wait for itself.
func product(x, y []float32) float32 {
	y = y[:len(x)]
	var a, b, c, d float32
	i := 0
	for ; i+3 < len(x); i += 4 {
		a += x[i] * y[i]
		b += x[i+1] * y[i+1]
		c += x[i+2] * y[i+2]
		d += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		a += x[i] * y[i]
	}
	return a + b + c + d
}

// End tells how the stretch since Begin ended: with its last voiced frame.
func (e *Estimator) End() eot.Prosody {
	from := max(0, e.heard-kept)
	if e.end <= from {
		return eot.Prosody{}
	}
	pitched := func(i int) bool { return e.pitch[i%kept] > 0 }
	all, n := e.median(&e.pitch, from, pitched)
	last, m := e.median(&e.pitch, max(from, e.end-lastPitch), pitched)
	if n < enough || m < enoughEnd {
		return eot.Prosody{}
	}
	every := func(int) bool { return true }
	whole, _ := e.median(&e.level, from, every)
	tail, _ := e.median(&e.level, max(from, e.end-lastLevel), every)
	return eot.Prosody{Fall: all - last, Trail: whole - tail, Known: true}
}

// median returns the median of those of x from a frame to the end that count,
// and how many they are.
func (e *Estimator) median(x *[kept]float64, from int, counts func(int) bool) (float64, int) {
	s := e.sorted[:0]
	for i := from; i < e.end; i++ {
		if counts(i) {
			s = append(s, x[i%kept])
		}
	}
	if len(s) == 0 {
		return 0, 0
	}
	slices.Sort(s)
	return s[len(s)/2], len(s)
}
