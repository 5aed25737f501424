// Package eot estimates whether a caller who paused has finished the turn (end-of-turn
// detection). It is pure.
package eot

import (
	"math"
	"strings"
)

// A Pause describes a caller who fell silent.
type Pause struct {
	Text     string // transcript of the turn so far
	Asked    string // last words of the agent
	Language string // BCP 47
	Prosody  Prosody
}

// A Prosody describes the sound of the last stretch of speech. The zero value carries no
// information.
type Prosody struct {
	// Fall is the pitch of the last 300 ms below the speaker's median, in semitones;
	// negative if it rises.
	Fall float64
	// Trail is the energy of the last 200 ms below the median of the stretch, in dB.
	Trail float64
	// Known means that there was enough voiced sound.
	Known bool
}

// A Guess is the probability that the caller has finished, and the reason.
type Guess struct {
	P         float64 // probability from 0 to 1
	Reason    string  // such as "sentence_ended", "clause_complete" or "unfinished"
	Dictation bool    // the caller dictates digits, a spelling or an address
}

// Guess returns the guess. Its reasons are:
//
//	no_words          the transcript is empty
//	trails_off        the text ends with a comma, a dash or an ellipsis
//	filler            the last word is a hesitation
//	unfinished        sentences do not end with the last word
//	address_open, address_complete, number_open, number_complete, spelling
//	                  a dictation continues or is complete
//	sentence_ended    the recognizer ended the sentence
//	answered          yes, no or a choice, as asked
//	closed            a phrase that closes a turn ("please", "thanks")
//	short_answer      few words after an open question
//	clause_complete   a clause that could end here
//	may_continue      a sentence after which people usually continue
//	fragment          words that make no clause
func (p Pause) Guess() Guess {
	text := strings.ToLower(strings.TrimSpace(p.Text))
	words := tokens(text)
	if len(words) == 0 {
		return Guess{Reason: "no_words"}
	}
	lex := lexiconFor(p.Language)
	want := Expect(p.Asked, p.Language)
	g, sure := p.guessMarked(text, words, lex, want)
	if !sure {
		g = lex.guess(words, want)
	}
	if lex.hasModel && p.Asked != "" {
		g = p.weighSentence(g, text, words)
	}
	if g.P >= minCertain {
		return g
	}
	if shifted := p.Prosody.shift(g.P); g.P >= minShiftUp || shifted < g.P {
		g.P = shifted
	}
	return g
}

// minShiftUp is the probability below which prosody never raises it, because no turn ends with
// a word like "because".
const minShiftUp = 0.3

// minCertain is the probability at and above which prosody has no effect.
const minCertain = 0.94

// maxShift is the largest effect of prosody, in log odds.
const maxShift = 0.75

// guessMarked guesses by punctuation and by words that decide alone. It reports false if it finds neither.
func (p Pause) guessMarked(text string, words []string, lex lexicon, want Expectation) (Guess, bool) {
	last := words[len(words)-1]
	g, dictated := p.guessDictation(words, lex, want)
	switch {
	case endsWith(text, ",", "…", "...", "-", "–", "—", ":"):
		return Guess{P: 0.2, Reason: "trails_off", Dictation: dictated}, true
	case isAnswer(words, lex, want):
		return Guess{P: 0.95, Reason: "answered"}, true
	case has(lex.fillers, last), len(words) == 1 && has(lex.openers, last):
		return Guess{P: 0.1, Reason: "filler"}, true
	case dictated:
		return g, true
	case endsWithPhrase(words, lex.closers) && (!lex.hasModel || guessByModel(words, lex, want).P >= 0.6):
		return Guess{P: 0.93, Reason: "closed"}, true
	case !endsWith(text, ".", "?", "!", "。", "？"):
		return Guess{}, false
	case has(lex.open, last) && len(words) > 1 && !endsWith(text, "?"):
		return Guess{P: 0.5, Reason: "unfinished"}, true
	default:
		return Guess{P: 0.95, Reason: "sentence_ended"}, true
	}
}

// isAnswer reports whether the words fully answer a yes-or-no question: "no", "yes
// please", "yes it is".
func isAnswer(words []string, lex lexicon, want Expectation) bool {
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
	case lex.hasModel:
		return guessByModel(words, lex, want)
	default:
		return guessByLists(words, lex, want)
	}
}

// guessByLists guesses by word lists and the number of words.
func guessByLists(words []string, lex lexicon, want Expectation) Guess {
	switch {
	case isUnfinished(words, lex):
		return Guess{P: 0.15, Reason: "unfinished"}
	case want == Choice && len(words) <= 4:
		return Guess{P: 0.9, Reason: "answered"}
	case isClause(words, lex) && want == OpenQuestion:
		return Guess{P: 0.7, Reason: "clause_complete"} // the answer may continue
	case isClause(words, lex):
		return Guess{P: 0.8, Reason: "clause_complete"}
	case lex.endings != "" && len(words) > 1:
		return Guess{P: 0.5, Reason: "fragment"}
	case want == OpenQuestion:
		return Guess{P: 0.65, Reason: "short_answer"}
	default:
		return Guess{P: 0.7, Reason: "fragment"}
	}
}

// isUnfinished reports whether more words must follow.
func isUnfinished(words []string, lex lexicon) bool {
	last := words[len(words)-1]
	opened := len(words) > 1 && len(words) <= 3 && has(lex.hinges, words[0])
	return opened || has(lex.open, last) && !closesHere(words, lex) || endsLike(last, lex.hanging)
}

// closesHere reports whether a last word that usually opens a phrase closes it here, as in
// "check that" but not "i think that", "go on" but not "the book is on", or "more than i do".
func closesHere(words []string, lex lexicon) bool {
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

// isClause reports whether the words could be a complete clause: a verb at the end in
// languages that place it there, otherwise a subject with further words.
func isClause(words []string, lex lexicon) bool {
	if lex.endings != "" {
		return endsLike(words[len(words)-1], lex.endings)
	}
	return len(words) >= 4 || len(words) == 3 && hasAny(words[:2], lex.subjects)
}

// shift adjusts p by prosody: falling pitch and fading energy indicate an end, rising or level
// pitch the opposite. The weights are estimates, not fitted to data, and change p by at most
// maxShift in log odds.
func (s Prosody) shift(p float64) float64 {
	if !s.Known || math.IsNaN(s.Fall) || math.IsNaN(s.Trail) || p == 0 {
		return p
	}
	by := max(-maxShift, min(clamp(0.15*(s.Fall-1))+clamp(0.05*(s.Trail-4)), maxShift))
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
