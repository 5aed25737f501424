package tone

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"time"
)

// A word is sent as a mark symbol and one symbol for each character. Silence separates words. A symbol is one of
// eight low tones together with one of eight high tones. All tones lie within the telephone band and at least 100 Hz
// apart, so that the middle of a slot is enough to identify them.
const (
	slot    = 30 * time.Millisecond
	gap     = 60 * time.Millisecond
	lowest  = 500.0  // lowest low tone, in Hz
	lowStep = 100.0  // distance between low tones, in Hz
	highest = 1500.0 // lowest high tone, in Hz
	hiStep  = 200.0  // distance between high tones, in Hz
	loud    = 0.25   // amplitude of each tone
	mark    = 0      // symbol at the beginning of a word
	shift   = 51     // symbol that makes the next symbol an index into cyrillic
)

// alphabet lists the characters. The index of a character is its symbol. Index 0 is the mark.
const alphabet = "\x00abcdefghijklmnopqrstuvwxyz0123456789'-.,?!:$%+@#&/"

// cyrillic returns the letters of Russian and Kazakh. A letter is sent as the symbol shift and its index plus 1.
func cyrillic() []rune {
	return []rune("абвгдеёжзийклмнопрстуфхцчшщъыьэюяәғқңөұүһі")
}

// symbols returns the symbols of a character, or none if the character cannot be sent.
func symbols(r rune) []int {
	if n := strings.IndexRune(alphabet, r); n > mark {
		return []int{n}
	}
	if n := slices.Index(cyrillic(), r); n >= 0 {
		return []int{shift, n + 1}
	}
	return nil
}

// Word is a word with the times at which it begins and ends in the stream.
type Word struct {
	Text       string
	Start, End time.Duration
}

// Encode returns text as tones with a sample rate in Hz, and its words with their times. White space separates words.
// Letters are converted to lower case. Characters that cannot be sent are dropped.
func Encode(rate int, text string) ([]int16, []Word) {
	var pcm []int16
	var words []Word
	for field := range strings.FieldsSeq(strings.ToLower(text)) {
		var word []int
		for _, r := range field {
			word = append(word, symbols(r)...)
		}
		if len(word) == 0 {
			continue
		}
		if len(words) > 0 {
			pcm = append(pcm, make([]int16, samples(rate, gap))...)
		}
		start := length(rate, len(pcm))
		pcm = symbol(pcm, rate, mark)
		for _, sym := range word {
			pcm = symbol(pcm, rate, sym)
		}
		words = append(words, Word{field, start, length(rate, len(pcm))})
	}
	return pcm, words
}

func symbol(pcm []int16, rate, sym int) []int16 {
	n := samples(rate, slot)
	low, high := complex(1, 0), complex(1, 0) // turned by a step per sample, which is faster than the sine of each sample
	lowTurn := turn(lowest+lowStep*float64(sym%8), rate)
	highTurn := turn(highest+hiStep*float64(sym/8), rate)
	ramp := rate / 400
	for i := range n {
		v := imag(low) + imag(high)
		pcm = append(pcm, int16(v*loud*32767*fade(i, n, ramp)))
		low, high = low*lowTurn, high*highTurn
	}
	return pcm
}

// turn returns the rotation by one sample of a tone.
func turn(freq float64, rate int) complex128 {
	return cmplx.Exp(complex(0, 2*math.Pi*freq/float64(rate)))
}

func samples(rate int, d time.Duration) int { return int(d * time.Duration(rate) / time.Second) }

func length(rate, n int) time.Duration { return time.Duration(n) * time.Second / time.Duration(rate) }
