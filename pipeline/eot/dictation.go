package eot

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Digits that are a whole number, by what is asked for; unknown numbers are
// whole from phone on.
const (
	phoneDigits = 10
	codeDigits  = 4
)

// dictated guesses inside a dictation. ok is false where there is none.
func (p Pause) dictated(words []string, lex lexicon, want Expectation) (g Guess, ok bool) {
	n, run, letters := digits(words, lex)
	last := words[len(words)-1]
	sign := strings.Contains(last, "@")
	switch {
	case (sign || at(words, lex)) && domain(words, lex):
		return Guess{P: 0.85, Reason: "address_complete", Dictation: true}, true
	case sign, want == Dictation && at(words, lex): // elsewhere "at" is but a word
		return Guess{P: 0.15, Reason: "address_open", Dictation: true}, true
	}
	switch {
	case want == Dictation && n >= wanted(p.Asked), want != Dictation && n >= phoneDigits:
		return Guess{P: 0.8, Reason: "number_complete", Dictation: true}, true
	case run >= 3, run >= 1 && names(words, lex, want):
		return Guess{P: 0.2, Reason: "number_open", Dictation: true}, true
	case letters >= 2 || want == Dictation && letters == 1:
		return Guess{P: 0.25, Reason: "spelling", Dictation: true}, true
	default:
		return Guess{}, false
	}
}

// names tells whether it is known what is dictated: it was asked for, or is named
// with no more than one word
// between: "my address is eighty".
func names(words []string, lex lexicon, want Expectation) bool {
	if want == Dictation {
		return true
	}
	end := len(words)
	for end > 0 && (numeral(words[end-1]) > 0 || has(lex.digits, words[end-1])) {
		end--
	}
	for what := range strings.SplitSeq(lex.numbers, "|") {
		for skip := range 2 {
			if what != "" && end > skip && strings.HasSuffix(" "+strings.Join(words[:end-skip], " "), " "+what) {
				return true
			}
		}
	}
	return false
}

// digits counts the digits of the words, those of them at the end, and the
// single letters there.
func digits(words []string, lex lexicon) (n, run, letters int) {
	for _, w := range words {
		switch k := numeral(w); {
		case k > 0:
			n, run, letters = n+k, run+k, 0
		case has(lex.digits, w):
			n, run, letters = n+1, run+1, 0
		case utf8.RuneCountInString(w) == 1:
			run, letters = 0, letters+1
		default:
			run, letters = 0, 0
		}
	}
	return n, run, letters
}

// numeral is how many digits w is made of, 0 where it has anything else but
// what stands between digits.
func numeral(w string) int {
	n := 0
	for _, r := range w {
		switch {
		case unicode.IsDigit(r):
			n++
		case !strings.ContainsRune("-.()+", r):
			return 0
		}
	}
	return n
}

// wanted is how many digits are a whole answer.
func wanted(asked string) int {
	asked = strings.ToLower(asked)
	if hasPhrase(asked, "last four|letzten vier|últimos cuatro|quatre derniers|последние четыре|соңғы төрт|pin|code|código|код|zip|postleitzahl|индекс") {
		return codeDigits
	}
	return phoneDigits
}

// at tells whether an address is being said in words: the sign, and something
// before it.
func at(words []string, lex lexicon) bool {
	for i, w := range words {
		if i > 0 && has("at arroba arobase собака", w) && has(lex.spelling, w) {
			return true
		}
	}
	return false
}

// domain tells whether an address has its end: "dot com", "example.org".
func domain(words []string, lex lexicon) bool {
	last := words[len(words)-1]
	if i := strings.LastIndexByte(last, '.'); i > 0 {
		return has(lex.domains, last[i+1:])
	}
	return len(words) > 1 && has(lex.domains, last) && has("dot punkt punto point точка нүкте", words[len(words)-2])
}
