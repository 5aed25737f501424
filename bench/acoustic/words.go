package acoustic

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

// A Fate is how much of a word the listener heard.
type Fate string

// Values of Fate.
const (
	Whole Fate = "whole"
	Cut   Fate = "cut"   // only the beginning of the word was heard
	Other Fate = "other" // an unexpected or damaged word
)

// A Word is a word that was heard.
type Word struct {
	Text       string // the word as it was spoken
	Raw        string // the word as it was received
	Fate       Fate
	Share      float64 // share of the word that was heard; 1 for a whole word
	Start, End time.Duration
}

// Words decodes the tone words of pcm at rate (Hz). known returns the word that a possibly
// damaged text stands for. complete returns the word that starts with a text. Both return "" if
// there is no such word.
func Words(pcm []int16, rate int, known func(text string) string, complete func(start string) string) []Word {
	var all []Word
	tail := make([]int16, rate/10) // the mark ends the last word
	h := tone.NewDecoder(rate)
	for _, w := range append(h.Decode(pcm), h.Decode(tail)...) {
		x := Word{Text: w.Text, Raw: w.Text, Fate: Other, Start: w.Start, End: w.End}
		clean := strings.TrimRight(w.Text, "~")
		if whole := known(w.Text); whole != "" {
			x.Text, x.Fate, x.Share = whole, Whole, 1
		} else if whole = complete(clean); whole != "" {
			x.Text, x.Fate = whole, Cut
			x.Share = float64(len(clean)+1) / float64(len(whole)+1) // the mark before the word counts as a letter
		}
		all = append(all, x)
	}
	return all
}

// A Comparison compares the words heard with those intended.
type Comparison struct {
	Heard   int // intended words that were heard, each counted once
	Lost    int // intended words that were not heard
	Cut     int // words of which only the beginning was heard
	Doubled int // whole words that were heard again
}

// Compare compares the words heard with those intended. It ignores other words. A word that was
// cut first and then spoken whole counts as heard.
func Compare(meant []string, heard []Word) Comparison {
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

// Differ returns the number of differences between the claimed words and the heard words. A word
// counts as heard if at least half of its audio was heard.
func Differ(claimed []string, heard []Word) int {
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
