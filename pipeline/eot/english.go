package eot

import (
	"math"

	"github.com/parley-voice/parley/pipeline/eot/ending"
)

// What the model of English says is turned into a probability about threshold,
// the log odds at which it tells complete sentences from open ones best. They are
// low, because most people who could end there go on. While an answer is made,
// 400 ms cost nothing, so nothing is surer than mostSure.
const (
	threshold = -3.1
	steepness = 3
	mostSure  = 0.8
)

// Words that open something, by how well the model knows them itself.
const (
	strict = "a an the and or but because if while although unless until of into onto between during against toward without my your our their its every as"
	loose  = "know think guess believe why how what more like need get make put let tell give send think say said"
)

// caution is what is taken off the log odds for a last word that mostly opens
// something.
func caution(words []string, lex lexicon) float64 {
	last := words[len(words)-1]
	switch {
	case !unfinished(words, lex):
		return 0
	case has(strict, last), has(lex.pointers, last):
		return 2
	case len(words) > 2 && has(loose, last):
		return 0
	default:
		return 1
	}
}

// trained guesses by the model of English.
func trained(words []string, lex lexicon, want Expectation) Guess {
	less := caution(words, lex)
	if less == 0 && want == Choice && len(words) <= 4 {
		return Guess{P: 0.9, Reason: "answered"}
	}
	odds := 1.5 * math.Exp(steepness*(ending.English().End(words)-less-threshold)) // 0.6 at the threshold
	g := Guess{P: mostSure, Reason: "clause_complete"}
	if odds < mostSure/(1-mostSure) {
		g.P = odds / (1 + odds)
	}
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
