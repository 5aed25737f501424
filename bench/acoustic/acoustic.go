// Package acoustic finds what a listener notices in received audio: when speech starts, ends or
// gets softer, and which words are audible. Positions are sample numbers from the start of the
// audio.
package acoustic

import (
	"math"
	"slices"

	"github.com/parley-voice/parley/media/tone"
)

// Limits of audibility.
const (
	Audible = -45.0 // level above which a window is audible, dBFS
	steps   = 100   // windows per second
	onset   = 4     // speech starts where at least atLeast of this many windows are audible
	atLeast = 3
	// A duck is a drop in level below the running level: the median of the audible windows before it.
	softer  = 9.0 // minimum drop in dB
	running = 30  // number of windows from which the running level is computed
	ducked  = 3   // minimum number of windows of a duck
	alike   = 3.0 // largest difference in level between the windows of a duck, dB
)

// Levels holds the levels of 10 ms windows, in dBFS.
type Levels struct {
	db     []float64
	window int // samples per window
}

// Measure returns the levels of pcm at rate (Hz). It ignores an incomplete last
// window.
func Measure(pcm []int16, rate int) Levels {
	l := Levels{window: rate / steps}
	for ; len(pcm) >= l.window; pcm = pcm[l.window:] {
		l.db = append(l.db, tone.Level(pcm[:l.window]))
	}
	return l
}

// A Span is a range of samples, To excluded.
type Span struct{ From, To int }

// Len returns the number of samples.
func (s Span) Len() int { return s.To - s.From }

// Overlap returns the number of common samples.
func (s Span) Overlap(o Span) int { return max(0, min(s.To, o.To)-max(s.From, o.From)) }

// Stretches returns the audible spans. Silence of less than gap samples does not end a span.
func (l Levels) Stretches(gap int) []Span {
	var all []Span
	for i := 0; i < len(l.db); i++ {
		if !l.begins(i) {
			continue
		}
		last := i
		for j := i; j < len(l.db) && (j-last)*l.window < gap; j++ {
			if l.db[j] > Audible {
				last = j
			}
		}
		all = append(all, Span{i * l.window, (last + 1) * l.window})
		i = last + max(1, gap/l.window) - 1
	}
	return all
}

// begins reports whether audio starts with window i.
func (l Levels) begins(i int) bool {
	n := 0
	for j := i; j < min(i+onset, len(l.db)); j++ {
		if l.db[j] > Audible {
			n++
		}
	}
	return l.db[i] > Audible && n >= atLeast
}

// Onset returns where audio starts at or after from; false means nowhere. Audio that is already
// audible at from starts there.
func (l Levels) Onset(from int) (int, bool) {
	for i := (from + l.window - 1) / l.window; i < len(l.db); i++ {
		if l.begins(i) {
			return i * l.window, true
		}
	}
	return 0, false
}

// A Duck is a drop in level.
type Duck struct {
	At int // first sample after the drop
	// Seen means that audio at full level came right before the drop. Otherwise silence came
	// before it, and the drop may have happened anywhere in the silence.
	Seen bool
}

// Duck returns the first drop between from and to. A drop is 9 dB or more below the running level
// before from, and lasts at least 30 ms. Silence is not a drop.
func (l Levels) Duck(from, to int) (Duck, bool) {
	first := from / l.window
	full, ok := l.running(first)
	if !ok {
		return Duck{}, false
	}
	for i := first; i+ducked <= min(to/l.window, len(l.db)); i++ {
		down := l.db[i : i+ducked]
		if low, high := slices.Min(down), slices.Max(down); low < Audible || high > full-softer || high-low > alike {
			continue
		}
		seen := i > 0 && l.db[i-1] > full-alike || i > 1 && l.db[i-1] > Audible && l.db[i-2] > full-alike
		return Duck{i * l.window, seen}, true
	}
	return Duck{}, false
}

// running returns the median level of the audible windows before window i.
func (l Levels) running(i int) (float64, bool) {
	var loud []float64
	for _, db := range l.db[max(0, i-running):min(i, len(l.db))] {
		if db > Audible {
			loud = append(loud, db)
		}
	}
	if len(loud) < atLeast {
		return math.Inf(-1), false
	}
	slices.Sort(loud)
	return loud[len(loud)/2], true
}
