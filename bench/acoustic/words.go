package acoustic

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

// A Fate is what became of a word on its way to the listener.
type Fate string

// Fates.
const (
	Whole Fate = "whole"
	Cut   Fate = "cut"   // its beginning alone came through
	Other Fate = "other" // not a word that was waited for, or damaged
)

// A Heard is a word that came through.
type Heard struct {
	Text       string // as it was meant
	Raw        string // as it came
	Fate       Fate
	Share      float64 // of its sound that came; 1 of a whole word
	Start, End time.Duration
}

// Words reads the words of a sound at rate (Hz). known is the word that a text is,
// though it may have been damaged on the way, and complete the word that it is
// the beginning of; both are "" where there is none.
func Words(pcm []int16, rate int, known func(text string) string, complete func(start string) string) []Heard {
	var all []Heard
	tail := make([]int16, rate/10) // so that the last word ends
	h := tone.NewHearer(rate)
	for _, w := range append(h.Hear(pcm), h.Hear(tail)...) {
		x := Heard{Text: w.Text, Raw: w.Text, Fate: Other, Start: w.Start, End: w.End}
		clean := strings.TrimRight(w.Text, "~")
		if whole := known(w.Text); whole != "" {
			x.Text, x.Fate, x.Share = whole, Whole, 1
		} else if whole = complete(clean); whole != "" {
			x.Text, x.Fate = whole, Cut
			x.Share = float64(len(clean)+1) / float64(len(whole)+1) // the mark before it counts
		}
		all = append(all, x)
	}
	return all
}

// A Comparison is how what was heard differs from what was meant.
type Comparison struct {
	Heard   int // words that were meant and heard, each counted once
	Lost    int // words that were meant and not heard
	Cut     int // words of which the beginning was heard, and never all
	Doubled int // words that were heard whole again
}

// Compare holds what was heard against what was meant to be. Words of others
// are passed over; a word that was cut and then said whole was heard.
func Compare(meant []string, heard []Heard) Comparison {
	var c Comparison
	whole, cut := map[string]int{}, map[string]bool{}
	for _, h := range heard {
		switch h.Fate {
		case Whole:
			whole[h.Text]++
		case Cut:
			cut[h.Text] = true
		case Other:
		}
	}
	for _, w := range meant {
		switch n := whole[w]; {
		case n > 0:
			c.Heard++
			c.Doubled += n - 1
		case cut[w]:
			c.Cut++
		default:
			c.Lost++
		}
	}
	return c
}

// Differ is by how many words what is said to have been heard is off. A word of
// which half or more was heard counts as heard.
func Differ(claimed []string, heard []Heard) int {
	count := map[string]int{}
	for _, w := range claimed {
		count[w]++
	}
	came := map[string]bool{}
	for _, h := range heard {
		if h.Fate != Other && h.Share >= 0.5 {
			came[h.Text] = true
		}
	}
	for w := range came {
		count[w]--
	}
	n := 0
	for _, d := range count {
		n += max(d, -d)
	}
	return n
}
