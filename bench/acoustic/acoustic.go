// Package acoustic finds in received sound what a listener would notice: when
// somebody begins and ends, grows quieter, and which words come through. It is
// pure; places are samples from the beginning of the sound.
package acoustic

import (
	"math"
	"slices"

	"github.com/parley-voice/parley/media/tone"
)

// What counts as sound.
const (
	Audible = -45.0 // dBFS that a window must have
	steps   = 100   // windows in a second
	onset   = 4     // windows of which atLeast must be audible for sound to begin
	atLeast = 3
	// softer is how far below the running level a duck is, dB; running is how
	// many windows the level is taken over, and ducked how many must be down.
	softer  = 9.0
	running = 30
	ducked  = 3
	alike   = 3.0 // dB within which the windows of a duck lie
)

// Levels are the levels of a sound in dBFS, by windows of 10 ms.
type Levels struct {
	db     []float64
	window int // samples
}

// Measure returns the levels of pcm at rate (Hz). A rest that fills no window is
// left out.
func Measure(pcm []int16, rate int) Levels {
	l := Levels{window: rate / steps}
	for ; len(pcm) >= l.window; pcm = pcm[l.window:] {
		l.db = append(l.db, tone.Level(pcm[:l.window]))
	}
	return l
}

// A Span is a stretch of sound: samples from From up to To.
type Span struct{ From, To int }

// Len is how many samples the span has.
func (s Span) Len() int { return s.To - s.From }

// Overlap is how many samples two spans share.
func (s Span) Overlap(o Span) int { return max(0, min(s.To, o.To)-max(s.From, o.From)) }

// Stretches are where there is sound, from its onset to its last audible window
// before silence of gap samples or more.
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

// begins tells whether sound begins with window i.
func (l Levels) begins(i int) bool {
	n := 0
	for j := i; j < min(i+onset, len(l.db)); j++ {
		if l.db[j] > Audible {
			n++
		}
	}
	return l.db[i] > Audible && n >= atLeast
}

// Onset is where sound first begins at from or later; false where it does not.
// Sound that goes on at from begins there.
func (l Levels) Onset(from int) (int, bool) {
	for i := (from + l.window - 1) / l.window; i < len(l.db); i++ {
		if l.begins(i) {
			return i * l.window, true
		}
	}
	return 0, false
}

// A Duck is a step down of the level.
type Duck struct {
	At int // the first window that is down
	// Seen tells that sound at full level came right before it. Where silence
	// did, the step may have been anywhere in it.
	Seen bool
}

// Duck finds the first step of 9 dB or more below the level that ran before
// from, and before to. Silence is no step: the sound must go on, quieter, for
// 30 ms.
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

// running is the median level of the audible windows before window i.
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
