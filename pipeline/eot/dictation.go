package eot

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Number of digits of a complete number, by the kind of number that the question asks for; phoneDigits if it names
// none.
const (
	phoneDigits = 10
	codeDigits  = 4
)

// guessDictation guesses whether a dictation is complete. ok is false if the caller does not dictate.
func (p Pause) guessDictation(words []string, lex lexicon, want Expectation) (g Guess, ok bool) {
	n, run, letters := digits(words, lex)
	last := words[len(words)-1]
	sign := strings.Contains(last, "@")
	switch {
	case (sign || hasAtWord(words, lex)) && hasDomain(words, lex):
		return Guess{P: 0.85, Reason: "address_complete", Dictation: true}, true
	case sign, want == Dictation && hasAtWord(words, lex): // outside dictation "at" is an ordinary word
		return Guess{P: 0.15, Reason: "address_open", Dictation: true}, true
	}
	switch {
	case want == Dictation && n >= expectedDigits(p.Asked), want != Dictation && n >= phoneDigits:
		return Guess{P: 0.8, Reason: "number_complete", Dictation: true}, true
	case run >= 3, run >= 1 && namesSubject(words, lex, want):
		return Guess{P: 0.2, Reason: "number_open", Dictation: true}, true
	case letters >= 2 || want == Dictation && letters == 1:
		return Guess{P: 0.25, Reason: "spelling", Dictation: true}, true
	default:
		return Guess{}, false
	}
}

// namesSubject reports whether it is known what the caller dictates: the agent asked for it, or the caller named it
// just before the digits, with at most one word in between, as in "my address is eighty".
func namesSubject(words []string, lex lexicon, want Expectation) bool {
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

// digits returns the number of digits in words (n), of digits at the end (run), and of single letters at the end.
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

// numeral returns the number of digits in w, or 0 if w contains anything but digits and
// their separators.
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

// expectedDigits returns the number of digits of a complete answer.
func expectedDigits(asked string) int {
	asked = strings.ToLower(asked)
	if hasPhrase(
		asked,
		"last four|letzten vier|últimos cuatro|quatre derniers|последние четыре|соңғы төрт|pin|code|código|код|zip|postleitzahl|индекс",
	) {
		return codeDigits
	}
	return phoneDigits
}

// hasAtWord reports whether a spoken address contains its at sign, after at least one word.
func hasAtWord(words []string, lex lexicon) bool {
	for i, w := range words {
		if i > 0 && has("at arroba arobase собака", w) && has(lex.spelling, w) {
			return true
		}
	}
	return false
}

// hasDomain reports whether an address ends with a top-level domain, as in "dot com" or "example.org".
func hasDomain(words []string, lex lexicon) bool {
	last := words[len(words)-1]
	if i := strings.LastIndexByte(last, '.'); i > 0 {
		return has(lex.domains, last[i+1:])
	}
	return len(words) > 1 && has(lex.domains, last) && has("dot punkt punto point точка нүкте", words[len(words)-2])
}
