// Package pronounce replaces words by their spoken forms in the text for a voice. In the word times that the voice
// reports, it restores the written words.
package pronounce

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/parley-voice/parley/pipeline"
)

const (
	maxWords = 256
	maxText  = 200 // maximum number of bytes of a word or of its spoken form
)

// Check validates a map from written words to spoken forms.
func Check(spoken map[string]string) error {
	if len(spoken) > maxWords {
		return fmt.Errorf("%d words; at most %d are accepted", len(spoken), maxWords)
	}
	for word, as := range spoken {
		switch {
		case word == "" || trimOuter(word) != word || strings.ContainsFunc(word, unicode.IsSpace):
			return fmt.Errorf("%q: use a single word that begins and ends with a letter or digit", word)
		case strings.TrimSpace(as) == "":
			return fmt.Errorf("%q: the spoken form is missing", word)
		case len(word) > maxText || len(as) > maxText:
			return errors.New("a word and its spoken form are limited to 200 bytes each")
		}
	}
	return nil
}

// A Stream handles one utterance. One goroutine calls Write and End; another may call Restore.
type Stream struct {
	spoken  map[string]string // spoken forms by lower-case word
	pending string            // start of a word that may have to be replaced
	inside  bool              // the text is within a word that stays as it is

	mu    sync.Mutex
	marks []mark // words that were sent to the voice and that it has not reported yet

	current pipeline.Word // the written word that is being assembled
	left    int           // number of spoken words of current that the voice has not reported yet
}

// mark is a written word and its number of spoken words.
type mark struct {
	written string
	words   int
}

// New returns a stream. Letter case is ignored.
func New(spoken map[string]string) *Stream {
	s := &Stream{spoken: map[string]string{}}
	for word, as := range spoken {
		s.spoken[strings.ToLower(word)] = as
	}
	return s
}

// Write takes text and returns the text that is ready for the voice. It keeps a word that may have to be replaced
// until the word is complete.
func (s *Stream) Write(text string) string {
	if len(s.spoken) == 0 {
		return text
	}
	var out strings.Builder
	text, s.pending = s.pending+text, ""
	for text != "" {
		n := strings.IndexFunc(text, unicode.IsSpace)
		switch {
		case n == 0:
			r := []rune(text)[0]
			out.WriteRune(r)
			text, s.inside = text[len(string(r)):], false
		case s.inside && n < 0:
			s.extendLast(text)
			out.WriteString(text)
			text = ""
		case s.inside:
			s.extendLast(text[:n])
			out.WriteString(text[:n])
			text = text[n:]
		case n > 0:
			out.WriteString(s.word(text[:n]))
			text = text[n:]
		case s.mayMatch(text):
			s.pending, text = text, ""
		default:
			s.addMark(text, 1)
			out.WriteString(text)
			text, s.inside = "", true
		}
	}
	return out.String()
}

// End returns the text that Write has kept.
func (s *Stream) End() string {
	held := s.pending
	if s.pending, s.inside = "", false; held == "" {
		return ""
	}
	return s.word(held)
}

// mayMatch reports whether the beginning of a word may become a word to replace.
func (s *Stream) mayMatch(text string) bool {
	begun := strings.ToLower(strings.TrimLeftFunc(text, isOuter))
	for word := range s.spoken {
		if strings.HasPrefix(word, begun) || strings.TrimRightFunc(begun, isOuter) == word {
			return true
		}
	}
	return false
}

// word returns the spoken form of a complete word, with its punctuation.
func (s *Stream) word(text string) string {
	as, ok := s.spoken[strings.ToLower(trimOuter(text))]
	if !ok {
		s.addMark(text, 1)
		return text
	}
	before := text[:len(text)-len(strings.TrimLeftFunc(text, isOuter))]
	after := text[len(strings.TrimRightFunc(text, isOuter)):]
	said := before + as + after
	s.addMark(text, len(strings.Fields(said)))
	return said
}

func (s *Stream) addMark(written string, words int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, mark{written, words})
}

// extendLast appends text to the last word that was sent, unless the voice has already reported that word.
func (s *Stream) extendLast(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.marks); n > 0 {
		s.marks[n-1].written += text
	}
}

// Restore replaces spoken words by the written ones. A word that is spoken as several words is
// returned once, after the last of them.
func (s *Stream) Restore(words []pipeline.Word) []pipeline.Word {
	if len(s.spoken) == 0 {
		return words
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []pipeline.Word
	for _, w := range words {
		if s.left > 0 {
			s.left--
			s.current.End = w.End
		} else if len(s.marks) > 0 {
			m := s.marks[0]
			s.marks, s.left = s.marks[1:], m.words-1
			w.Text = m.written
			s.current = w
		} else {
			s.current = w
		}
		if s.left == 0 {
			all = append(all, s.current)
		}
	}
	return all
}

// isOuter reports whether r is punctuation around a word.
func isOuter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func trimOuter(word string) string { return strings.TrimFunc(word, isOuter) }
