// Package eot guesses whether somebody who fell silent has finished. It is
// pure.
package eot

import (
	"slices"
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

// Guess guesses.
func (p Pause) Guess() Guess {
	text := strings.ToLower(strings.TrimSpace(p.Text))
	words := strings.Fields(text)
	if len(words) == 0 {
		return Guess{Reason: "no_words"}
	}
	last := strings.Trim(words[len(words)-1], ".,?!…-")
	switch {
	case slices.Contains(unfinished(), last) || strings.HasSuffix(text, ",") || strings.HasSuffix(text, "…"):
		return Guess{P: 0.2, Reason: "unfinished"}
	case strings.ContainsAny(text[len(text)-1:], ".?!"):
		return Guess{P: 0.95, Reason: "sentence_ended"}
	default:
		return Guess{P: 0.7, Reason: "no_punctuation"}
	}
}

// unfinished lists words that English sentences do not end with.
func unfinished() []string {
	return []string{
		"a", "an", "and", "because", "but", "for", "from", "if", "in", "is", "like", "my", "of", "or",
		"so", "that", "the", "then", "to", "uh", "um", "well", "when", "with", "your",
	}
}
