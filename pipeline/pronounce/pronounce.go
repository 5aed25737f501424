// Package pronounce writes words for a voice as they are to be spoken, and
// turns what the voice tells of them back into the words as they are written.
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
	mostWords   = 256
	longestText = 200 // bytes of a word or of how it is spoken
)

// Check returns what is wrong with words and how they are spoken.
func Check(spoken map[string]string) error {
	if len(spoken) > mostWords {
		return fmt.Errorf("%d words; at most %d are accepted", len(spoken), mostWords)
	}
	for word, as := range spoken {
		switch {
		case word == "" || bare(word) != word || strings.ContainsFunc(word, unicode.IsSpace):
			return fmt.Errorf("%q: use one word, which begins and ends with a letter or digit", word)
		case strings.TrimSpace(as) == "":
			return fmt.Errorf("%q: how it is spoken is missing", word)
		case len(word) > longestText || len(as) > longestText:
			return errors.New("a word and how it is spoken have at most 200 bytes each")
		}
	}
	return nil
}

// A Stream is one utterance. Say and End belong to whoever gives the voice its
// text, Restore to whoever takes its speech.
type Stream struct {
	spoken map[string]string // by the word in lower case
	held   string            // the beginning of a word that may be one of them
	inside bool              // a word that is none of them goes on

	mu    sync.Mutex
	marks []mark // of the words given to the voice that it has not told yet

	part pipeline.Word // of a word that is spoken as several
	left int           // how many of those are still to come
}

// mark is a written word and how many words it is spoken as.
type mark struct {
	written string
	words   int
}

// New returns a stream. Letter case does not matter to words.
func New(spoken map[string]string) *Stream {
	s := &Stream{spoken: map[string]string{}}
	for word, as := range spoken {
		s.spoken[strings.ToLower(word)] = as
	}
	return s
}

// Say takes text as it comes, and returns what of it is ready for the voice. A
// word that may be one of those to be spoken otherwise is held back until it is
// whole.
func (s *Stream) Say(text string) string {
	if len(s.spoken) == 0 {
		return text
	}
	var out strings.Builder
	text, s.held = s.held+text, ""
	for text != "" {
		n := strings.IndexFunc(text, unicode.IsSpace)
		switch {
		case n == 0:
			r := []rune(text)[0]
			out.WriteRune(r)
			text, s.inside = text[len(string(r)):], false
		case s.inside && n < 0:
			s.more(text)
			out.WriteString(text)
			text = ""
		case s.inside:
			s.more(text[:n])
			out.WriteString(text[:n])
			text = text[n:]
		case n > 0:
			out.WriteString(s.word(text[:n]))
			text = text[n:]
		case s.open(text):
			s.held, text = text, ""
		default:
			s.note(text, 1)
			out.WriteString(text)
			text, s.inside = "", true
		}
	}
	return out.String()
}

// End returns what was held back.
func (s *Stream) End() string {
	held := s.held
	if s.held, s.inside = "", false; held == "" {
		return ""
	}
	return s.word(held)
}

// open tells whether a word that has begun may become one of those.
func (s *Stream) open(text string) bool {
	begun := strings.ToLower(strings.TrimLeftFunc(text, outer))
	for word := range s.spoken {
		if strings.HasPrefix(word, begun) || strings.TrimRightFunc(begun, outer) == word {
			return true
		}
	}
	return false
}

// word is a whole word as it is spoken, with the signs around it.
func (s *Stream) word(text string) string {
	as, ok := s.spoken[strings.ToLower(bare(text))]
	if !ok {
		s.note(text, 1)
		return text
	}
	before := text[:len(text)-len(strings.TrimLeftFunc(text, outer))]
	after := text[len(strings.TrimRightFunc(text, outer)):]
	said := before + as + after
	s.note(text, len(strings.Fields(said)))
	return said
}

func (s *Stream) note(written string, words int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, mark{written, words})
}

// more adds to the word that is being given to the voice, where the voice has
// not told it yet.
func (s *Stream) more(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.marks); n > 0 {
		s.marks[n-1].written += text
	}
}

// Restore puts the written words in the place of spoken ones. A word that is
// spoken as several is told once, when the last of them is there.
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
			s.part.End = w.End
		} else if len(s.marks) > 0 {
			m := s.marks[0]
			s.marks, s.left = s.marks[1:], m.words-1
			w.Text = m.written
			s.part = w
		} else {
			s.part = w
		}
		if s.left == 0 {
			all = append(all, s.part)
		}
	}
	return all
}

// outer is what may stand around a word.
func outer(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func bare(word string) string { return strings.TrimFunc(word, outer) }
