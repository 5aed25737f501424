package playout

import (
	"strings"
	"unicode"

	"github.com/parley-voice/parley/pipeline"
)

// split splits text into words. Scripts without spaces are split by character.
func split(text string) []string {
	var words []string
	for field := range strings.FieldsSeq(text) {
		from := 0
		for i, r := range field {
			if dense(r) && i > from {
				words = append(words, field[from:i])
				from = i
			}
		}
		words = append(words, field[from:])
	}
	return words
}

// dense reports whether r belongs to a script without spaces.
func dense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// join joins words with spaces, except in scripts without spaces.
func join(words []pipeline.Word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && !strings.ContainsFunc(w.Text, dense) {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	return b.String()
}
