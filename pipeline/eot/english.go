package eot

import (
	"math"

	"github.com/parley-voice/parley/pipeline/eot/ending"
)

// What the model of English says is turned into a probability about threshold,
// the log odds at which it tells complete sentences from open ones best. They are
// low, because most people who could end there go on. On the way to an answer
// 400 ms cost nothing, so nothing is surer than mostSure.
const (
	threshold = -2.6
	steepness = 3
	caution   = 2 // taken off where the last word is one that opens something
	mostSure  = 0.8
)

// trained guesses by the model of English.
func trained(words []string, lex lexicon, want Expectation) Guess {
	open := unfinished(words, lex)
	if !open && want == Choice && len(words) <= 4 {
		return Guess{P: 0.9, Reason: "answered"}
	}
	y := ending.English().End(words) - threshold
	if open {
		y -= caution
	}
	odds := 1.5 * math.Exp(steepness*y) // 0.6 at the threshold
	g := Guess{P: min(odds/(1+odds), mostSure), Reason: "clause_complete"}
	switch {
	case g.P < 0.6:
		g.Reason = "unfinished"
	case want == Telling: // an answer that may go on
		g.P = min(g.P, 0.7)
		if len(words) <= 2 {
			g.Reason = "short_answer"
		}
	}
	return g
}
