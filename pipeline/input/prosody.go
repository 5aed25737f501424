package input

import (
	"math"
	"slices"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/eot"
)

const (
	pitchRate     = 4000 // Hz at which pitch is measured
	perFrame      = pitchRate / 50
	window        = 2 * perFrame
	longest       = pitchRate / 60  // lag of the lowest voice, 60 Hz, in samples
	shortest      = pitchRate / 400 // lag of the highest voice, 400 Hz, in samples
	periodic      = 0.5             // minimum correlation of sound that has a pitch
	prosodyFrames = 256             // number of frames kept, from the end of a stretch of speech: 5 s
	lastPitch     = 15              // frames at the end whose pitch is compared: 300 ms
	lastLevel     = 10              // frames at the end whose level is compared: 200 ms
	minPitched    = 8               // minimum number of frames with a pitch in a stretch
	minPitchedEnd = 3               // minimum number of frames with a pitch at the end of a stretch
)

// A prosodyEstimator measures the melody and loudness at the end of speech. The zero value
// is ready to use. It is for one goroutine and allocates nothing.
type prosodyEstimator struct {
	recent [window + longest]float32 // input resampled to pitchRate
	pitch  [prosodyFrames]float64    // semitones above 1 Hz; 0 without a pitch
	level  [prosodyFrames]float64    // levels in dBFS
	frames int                       // frames since Begin
	end    int                       // frames up to the last voiced one
	sorted [prosodyFrames]float64
}

// Begin starts a new stretch of speech.
func (e *prosodyEstimator) Begin() { e.frames, e.end = 0, 0 }

// Frame takes a frame of 160 or 320 samples, its level (dBFS), and whether it is voiced.
// Unvoiced frames cost almost nothing.
func (e *prosodyEstimator) Frame(f media.Frame, level float64, voiced bool) {
	e.take(f)
	at := e.frames % prosodyFrames
	e.frames++
	e.pitch[at], e.level[at] = 0, level
	if !voiced {
		return
	}
	e.end = e.frames
	if e.frames%2 == 0 { // pitch changes slowly, so every second frame is enough
		e.pitch[at] = e.find()
	}
}

// take reduces the frame's sample rate to pitchRate, by averaging neighboring samples.
func (e *prosodyEstimator) take(f media.Frame) {
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

// find returns the pitch of the last two frames in semitones above 1 Hz: the shortest lag among
// the highest peaks of the normalized correlation (A. de Cheveigné and H. Kawahara, "YIN",
// 2002, say why).
func (e *prosodyEstimator) find() float64 {
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
	var other float32 // power of the compared stretch, which moves back by one sample per lag
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
		return 12 * math.Log2(pitchRate/exact)
	}
	return 0
}

// product returns the sum of the products of x and y, which have the same length. It uses four
// sums, because additions into a single one cannot run in parallel.
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

// End returns the prosody of the stretch since Begin, up to its last voiced frame.
func (e *prosodyEstimator) End() eot.Prosody {
	from := max(0, e.frames-prosodyFrames)
	if e.end <= from {
		return eot.Prosody{}
	}
	pitched := func(i int) bool { return e.pitch[i%prosodyFrames] > 0 }
	all, n := e.median(&e.pitch, from, pitched)
	last, m := e.median(&e.pitch, max(from, e.end-lastPitch), pitched)
	if n < minPitched || m < minPitchedEnd {
		return eot.Prosody{}
	}
	every := func(int) bool { return true }
	whole, _ := e.median(&e.level, from, every)
	tail, _ := e.median(&e.level, max(from, e.end-lastLevel), every)
	return eot.Prosody{Fall: all - last, Trail: whole - tail, Known: true}
}

// median returns the median of the entries of x from frame from to the end that satisfy counts,
// and their number.
func (e *prosodyEstimator) median(x *[prosodyFrames]float64, from int, counts func(int) bool) (float64, int) {
	s := e.sorted[:0]
	for i := from; i < e.end; i++ {
		if counts(i) {
			s = append(s, x[i%prosodyFrames])
		}
	}
	if len(s) == 0 {
		return 0, 0
	}
	slices.Sort(s)
	return s[len(s)/2], len(s)
}
