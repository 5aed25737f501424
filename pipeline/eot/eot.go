// Package eot guesses whether somebody who fell silent has finished. It is
// pure.
package eot

import (
	"math"
	"strings"
)

// A Pause is what is known of a caller who fell silent.
type Pause struct {
	Text     string // what was understood of this turn so far
	Asked    string // what the agent said last
	Language string // BCP 47
	Prosody  Prosody
}

// A Prosody is how the last stretch of speech sounded. The zero value tells
// nothing.
type Prosody struct {
	// Fall is how far the pitch of the last 300 ms lies under the speaker's
	// median, in semitones; negative where it rises.
	Fall float64
	// Trail is how far the energy of the last 200 ms lies under the median of
	// the stretch, in dB.
	Trail float64
	// Known tells that there was enough voiced sound to tell.
	Known bool
}

// A Guess is how likely it is that the caller has finished, and why.
type Guess struct {
	P         float64 // 0 to 1
	Reason    string  // "sentence_ended", "clause_complete", "unfinished", …
	Dictation bool    // digits, spelling or an address are being dictated
}

// Guess guesses. Its reasons are:
//
//	no_words          nothing was understood
//	trails_off        the text ends with a comma, a dash or an ellipsis
//	filler            the last word is a sound of somebody who thinks
//	unfinished        sentences do not end with the last word
//	address_open, address_complete, number_open, number_complete, spelling
//	                  something is being dictated, or just was
//	sentence_ended    the recogniser closed the sentence
//	answered          yes or no, or a choice, as was asked
//	closed            a phrase that closes a turn ("please", "thanks")
//	short_answer      few words after an open question
//	clause_complete   a clause that could end here
//	fragment          words that make no clause
func (p Pause) Guess() Guess {
	text := strings.ToLower(strings.TrimSpace(p.Text))
	words := tokens(text)
	if len(words) == 0 {
		return Guess{Reason: "no_words"}
	}
	lex := speech(p.Language)
	want := Expect(p.Asked, p.Language)
	g, sure := p.marked(text, words, lex, want)
	if !sure {
		g = lex.guess(words, want)
	}
	if g.P >= settled {
		return g
	}
	if shifted := p.Prosody.shift(g.P); g.P >= doubtful || shifted < g.P {
		g.P = shifted
	}
	return g
}

// doubtful is the probability under which no melody speaks for an end: nobody
// finishes with "because".
const doubtful = 0.3

// settled is the probability from which the melody changes nothing.
const settled = 0.94

// bound is how far the melody moves a guess, in log odds.
const bound = 0.75

// marked guesses by the marks of the recogniser and by what tells the same with
// and without them.
func (p Pause) marked(text string, words []string, lex lexicon, want Expectation) (Guess, bool) {
	last := words[len(words)-1]
	g, dictated := p.dictated(words, lex, want)
	switch {
	case endsWith(text, ",", "…", "...", "-", "–", "—", ":"):
		return Guess{P: 0.2, Reason: "trails_off", Dictation: dictated}, true
	case answers(words, lex, want):
		return Guess{P: 0.95, Reason: "answered"}, true
	case has(lex.fillers, last), len(words) == 1 && has(lex.openers, last):
		return Guess{P: 0.1, Reason: "filler"}, true
	case dictated:
		return g, true
	case closes(words, lex.closers) && (!lex.trained || trained(words, lex, want).P >= 0.6):
		return Guess{P: 0.93, Reason: "closed"}, true
	case !endsWith(text, ".", "?", "!", "。", "？"):
		return Guess{}, false
	case has(lex.open, last) && len(words) > 1 && !endsWith(text, "?"):
		return Guess{P: 0.5, Reason: "unfinished"}, true
	default:
		return Guess{P: 0.95, Reason: "sentence_ended"}, true
	}
}

// answers tells whether the words are a whole answer to a yes-or-no question:
// "no", "yes please", "yes it is".
func answers(words []string, lex lexicon, want Expectation) bool {
	last := words[len(words)-1]
	switch {
	case want != YesNo || len(words) > 3 || !has(lex.yes, words[0]) || has(lex.fillers, last):
		return false
	default:
		return len(words) == 1 || !has(lex.open, last) || len(words) == 3 && has(lex.subjects, words[1])
	}
}

// guess guesses by the words alone.
func (lex lexicon) guess(words []string, want Expectation) Guess {
	yes := len(words) == 1 && has(lex.yes, words[0])
	switch {
	case yes && want != Anything:
		return Guess{P: 0.9, Reason: "answered"}
	case yes:
		return Guess{P: 0.8, Reason: "answered"}
	case lex.trained:
		return trained(words, lex, want)
	default:
		return unmarked(words, lex, want)
	}
}

// unmarked guesses by lists of words and how many there are.
func unmarked(words []string, lex lexicon, want Expectation) Guess {
	switch {
	case unfinished(words, lex):
		return Guess{P: 0.15, Reason: "unfinished"}
	case want == Choice && len(words) <= 4:
		return Guess{P: 0.9, Reason: "answered"}
	case clause(words, lex) && want == Telling:
		return Guess{P: 0.7, Reason: "clause_complete"} // an answer that may go on
	case clause(words, lex):
		return Guess{P: 0.8, Reason: "clause_complete"}
	case lex.endings != "" && len(words) > 1:
		return Guess{P: 0.5, Reason: "fragment"}
	case want == Telling:
		return Guess{P: 0.65, Reason: "short_answer"}
	default:
		return Guess{P: 0.7, Reason: "fragment"}
	}
}

// unfinished tells whether the words cannot be all.
func unfinished(words []string, lex lexicon) bool {
	last := words[len(words)-1]
	opened := len(words) > 1 && len(words) <= 3 && has(lex.hinges, words[0])
	return opened || has(lex.open, last) && !settles(words, lex) || endsLike(last, lex.hanging)
}

// settles tells whether a last word that mostly opens something closes it here:
// "check that" but not "i think that", "go on" but not "the book is on", "more
// than i do".
func settles(words []string, lex lexicon) bool {
	n := len(words)
	if n < 3 {
		return false
	}
	switch last, before := words[n-1], words[n-2]; {
	case has(lex.pointers, last):
		return has(lex.governs, before)
	case has(lex.particles, last):
		return has(lex.moves, before)
	default:
		return has(lex.compares, words[n-3]) && has(lex.subjects, before)
	}
}

// clause tells whether the words could be a whole clause: a verb at the end,
// where the language puts it there, else a subject and something said of it.
func clause(words []string, lex lexicon) bool {
	if lex.endings != "" {
		return endsLike(words[len(words)-1], lex.endings)
	}
	return len(words) >= 4 || len(words) == 3 && hasAny(words[:2], lex.subjects)
}

// shift moves p by what was heard: a pitch that falls and a voice that trails
// off speak for an end, a pitch that rises or stays up against it. The weights
// are chosen, not fitted: they move p by bound in log odds at most.
func (s Prosody) shift(p float64) float64 {
	if !s.Known || math.IsNaN(s.Fall) || math.IsNaN(s.Trail) || p == 0 {
		return p
	}
	by := max(-bound, min(clamp(0.15*(s.Fall-1))+clamp(0.05*(s.Trail-4)), bound))
	odds := p / (1 - p) * math.Exp(by)
	return odds / (1 + odds)
}

func clamp(x float64) float64 { return max(-1, min(x, 1)) }

func endsWith(text string, marks ...string) bool {
	for _, s := range marks {
		if strings.HasSuffix(text, s) {
			return true
		}
	}
	return false
}
