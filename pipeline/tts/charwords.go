package tts

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// charWords turns timed characters into timed words.
type charWords struct {
	word strings.Builder
	from time.Duration // start of the word
}

// add takes the next character. White space completes a word; add appends that word to words.
func (w *charWords) add(words []pipeline.Word, char string, start time.Duration) []pipeline.Word {
	if strings.TrimSpace(char) == "" {
		return w.end(words, start)
	}
	if w.word.Len() == 0 {
		w.from = start
	}
	w.word.WriteString(char)
	return words
}

// end appends the word in progress, if there is one, to words.
func (w *charWords) end(words []pipeline.Word, at time.Duration) []pipeline.Word {
	if w.word.Len() > 0 {
		words = append(words, pipeline.Word{Text: w.word.String(), Start: w.from, End: at})
		w.word.Reset()
	}
	return words
}
