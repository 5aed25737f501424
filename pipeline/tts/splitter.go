package tts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minClause is the minimum length of a clause in bytes. A shorter clause is joined with the next
	// one, because voices read fragments with poor intonation.
	minClause = 12
	// maxClause is the number of bytes after which text without a closing mark is split between words.
	maxClause = 240
)

// Punctuation marks that close a clause. Dense scripts, such as Chinese, have no space after a mark.
const (
	marks      = ".?!…;:\n؟۔।"
	denseMarks = "。！？；：｡"
)

// A Splitter splits streamed text into clauses that can be spoken separately. The zero
// value is ready to use.
type Splitter struct{ rest string }

// Add takes more text and returns the complete clauses, trimmed. A mark closes a clause if white
// space follows. A newline or a mark of a dense script always closes it.
func (s *Splitter) Add(text string) []string {
	s.rest += text
	var whole []string
	from, space := 0, 0 // start of the current clause, and end of the last white space
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

// End returns the remaining text, trimmed, and resets the splitter.
func (s *Splitter) End() string {
	rest := strings.TrimSpace(s.rest)
	s.rest = ""
	return rest
}
