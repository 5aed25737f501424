package tone

import (
	"math"
	"strings"
	"time"
)

// The line code. A word is a mark symbol and then a symbol a character, back to
// back; between words there is silence. A symbol is one of eight low tones
// together with one of eight high ones, all inside the telephone band and
// 100 Hz apart or more, so that the middle of a slot tells them apart.
const (
	slot    = 30 * time.Millisecond
	gap     = 60 * time.Millisecond
	lowest  = 500.0  // Hz
	lowStep = 100.0  // Hz
	highest = 1500.0 // Hz, the lowest of the high tones
	hiStep  = 200.0  // Hz
	loud    = 0.25   // amplitude of each of the two tones
	mark    = 0      // the symbol that begins a word
)

// alphabet holds the characters that can be sent; a character's symbol is its
// place, and place 0 is the mark.
const alphabet = "\x00abcdefghijklmnopqrstuvwxyz0123456789'-.,?!:$%+@#&/"

// A Word is one word and when it is said, from the beginning of its stream.
type Word struct {
	Text       string
	Start, End time.Duration
}

// Say returns text spoken in tones at rate (Hz) and when each word is said.
// Words are what white space separates, in lower case; characters that the
// line code has no symbol for are left out, and so is a word of none but those.
func Say(rate int, text string) ([]int16, []Word) {
	var pcm []int16
	var words []Word
	for field := range strings.FieldsSeq(strings.ToLower(text)) {
		word := strings.Map(func(r rune) rune {
			if r == 0 || !strings.ContainsRune(alphabet, r) {
				return -1
			}
			return r
		}, field)
		if word == "" {
			continue
		}
		if len(words) > 0 {
			pcm = append(pcm, make([]int16, samples(rate, gap))...)
		}
		start := length(rate, len(pcm))
		pcm = symbol(pcm, rate, mark)
		for _, r := range word {
			pcm = symbol(pcm, rate, strings.IndexRune(alphabet, r))
		}
		words = append(words, Word{field, start, length(rate, len(pcm))})
	}
	return pcm, words
}

func symbol(pcm []int16, rate, sym int) []int16 {
	n := samples(rate, slot)
	low := 2 * math.Pi * (lowest + lowStep*float64(sym%8)) / float64(rate)
	high := 2 * math.Pi * (highest + hiStep*float64(sym/8)) / float64(rate)
	ramp := rate / 400
	for i := range n {
		v := math.Sin(low*float64(i)) + math.Sin(high*float64(i))
		pcm = append(pcm, int16(v*loud*32767*fade(i, n, ramp)))
	}
	return pcm
}

func samples(rate int, d time.Duration) int { return int(d * time.Duration(rate) / time.Second) }

func length(rate, n int) time.Duration { return time.Duration(n) * time.Second / time.Duration(rate) }
