package pipeline

import (
	"strings"
	"unicode"
)

// Clean is text as anybody may store and show it: valid UTF-8 without control
// characters, which a provider may send all the same.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
