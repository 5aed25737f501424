package eot

import (
	"math"
	"strings"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// guessByModel converts the log odds of the English model to a probability, which is 0.6 at threshold. The threshold
// best separates complete from open sentences. It is low, because most callers who could end at a point continue. The
// probability is at most maxModelP. The turn then waits 400 ms, which costs nothing while an answer is prepared.
const (
	threshold = -3.1
	steepness = 3
	maxModelP = 0.8
)

// Words that open a phrase. A sentence hardly ever ends with a strict opener. After a loose opener the model decides
// alone, if there are at least three words.
const (
	strictOpeners = "a an the and or but because if while although unless until of into onto between during against toward without my your our their its every as"
	looseOpeners  = "know think guess believe why how what more like need get make put let tell give send think say said"
)

// openWordPenalty returns the amount to subtract from the log odds for a last word that
// usually opens a phrase.
func openWordPenalty(words []string, lex lexicon) float64 {
	last := words[len(words)-1]
	switch {
	case !isUnfinished(words, lex):
		return 0
	case has(strictOpeners, last), has(lex.pointers, last):
		return 2
	case len(words) > 2 && has(looseOpeners, last):
		return 0
	default:
		return 1
	}
}

// guessByModel guesses with the English model.
func guessByModel(words []string, lex lexicon, want Expectation) Guess {
	less := openWordPenalty(words, lex)
	if less == 0 && want == Choice && len(words) <= 4 {
		return Guess{P: 0.9, Reason: "answered"}
	}
	odds := 1.5 * math.Exp(steepness*(model.English().End(words)-less-threshold)) // 0.6 at the threshold
	g := Guess{P: maxModelP, Reason: "clause_complete"}
	if odds < maxModelP/(1-maxModelP) {
		g.P = odds / (1 + odds)
	}
	switch {
	case g.P < 0.6:
		g.Reason = "unfinished"
	case want == OpenQuestion: // the answer may continue
		g.P = min(g.P, 0.7)
		if len(words) <= 2 {
			g.Reason = "short_answer"
		}
	}
	return g
}

const (
	mayContinue  = -0.4 // log odds of the model of turns below which most people continue after a sentence
	mayContinueP = 0.5  // probability of such a sentence; the turn then waits 800 ms instead of 220
)

// weighSentence lowers the guess for a sentence that the recognizer ended, if people seldom end a turn with such a
// sentence. Recognizers end a sentence at almost every pause.
func (p Pause) weighSentence(g Guess, text string, words []string) Guess {
	if g.Reason != "sentence_ended" || g.Dictation {
		return g
	}
	c := model.Clause{Words: words, Asked: tokens(strings.ToLower(p.Asked))}
	c.Mark, c.Sentences, c.Last = model.Marks(text)
	if model.EnglishTurns().End(c) < mayContinue {
		g.P, g.Reason = mayContinueP, "may_continue"
	}
	return g
}
