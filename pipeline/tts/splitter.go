package tts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minClause is the minimum length of a clause in bytes. Shorter clauses are joined with the
	// next one, because voices read fragments with poor intonation.
	minClause = 12
	// maxClause is the number of bytes without a closing mark after which text is cut
	// between words.
	maxClause = 240
)

// Marks that close a clause. Dense scripts, such as Chinese, have no space after them.
const (
	marks      = ".?!…;:\n؟۔।"
	denseMarks = "。！？；：｡"
)

// A Splitter splits streamed text into clauses that can be spoken separately. The zero
// value is ready to use.
type Splitter struct{ rest string }

// Add takes more text and returns the complete clauses, trimmed. A closing mark counts if
// white space follows, except in dense scripts.
func (s *Splitter) Add(text string) []string {
	s.rest += text
	var whole []string
	from, space := 0, 0 // start of the clause, and the end of its last white space
	cut := func(end int) {
		if c := strings.TrimSpace(s.rest[from:end]); c != "" {
			whole = append(whole, c)
		}
		from = end
	}
	for i := 0; i < len(s.rest); {
		r, size := utf8.DecodeRuneInString(s.rest[i:])
		end := i + size
		if unicode.IsSpace(r) {
			space = end
		}
		switch {
		case i-from < minClause:
		case endsClause(r, s.rest[end:]):
			cut(end)
		case end-from > maxClause && space-from > minClause:
			cut(space)
		}
		i = end
	}
	s.rest = s.rest[from:]
	return whole
}

// endsClause reports whether the rune before rest closes a clause.
func endsClause(r rune, rest string) bool {
	switch {
	case r == '\n', strings.ContainsRune(denseMarks, r):
		return true
	case !strings.ContainsRune(marks, r) || rest == "":
		return false
	}
	return strings.ContainsAny(rest[:1], " \n\t")
}

// End returns the remaining text.
func (s *Splitter) End() string {
	rest := strings.TrimSpace(s.rest)
	s.rest = ""
	return rest
}
