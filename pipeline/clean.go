package pipeline

import (
	"strings"
	"unicode"
)

// Clean returns text as valid UTF-8 without control characters, safe to store and show.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
