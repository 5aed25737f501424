package turn

import (
	"slices"
	"strings"
	"time"
)

// EndOfTurn guesses how likely it is that somebody who said text, and then fell
// silent, has finished (0 to 1).
func EndOfTurn(text string) float64 {
	text = strings.ToLower(strings.TrimSpace(text))
	words := strings.Fields(text)
	if len(words) == 0 {
		return 0
	}
	last := strings.Trim(words[len(words)-1], ".,?!…-")
	switch {
	case slices.Contains(unfinished(), last) || strings.HasSuffix(text, ",") || strings.HasSuffix(text, "…"):
		return 0.2
	case strings.ContainsAny(text[len(text)-1:], ".?!"):
		return 0.95
	default:
		return 0.7 // no punctuation tells nothing
	}
}

// unfinished lists words that English sentences do not end with.
func unfinished() []string {
	return []string{
		"a", "an", "and", "because", "but", "for", "from", "if", "in", "is", "like", "my", "of", "or",
		"so", "that", "the", "then", "to", "uh", "um", "well", "when", "with", "your",
	}
}

// patience is how long after the caller's last sound the turn is committed.
func patience(p float64) time.Duration {
	switch {
	case p >= 0.9:
		return 220 * time.Millisecond
	case p >= 0.6:
		return 400 * time.Millisecond
	case p >= 0.3:
		return 800 * time.Millisecond
	default:
		return 1600 * time.Millisecond
	}
}
