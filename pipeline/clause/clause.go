// Package clause cuts text that streams into clauses.
package clause

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// shortest is how many bytes a clause has at least: shorter ones are spoken
	// with the next, for a voice asked for crumbs sounds like one that reads crumbs.
	shortest = 12
	// longest is how many bytes without a closing mark are waited for; they are
	// then cut between two words.
	longest = 240
)

// Marks that close a clause; those of dense writings have no space behind them.
const (
	marks = ".?!…;:\n؟۔।"
	dense = "。！？；：｡"
)

// A Splitter cuts streamed text into clauses that can be spoken on their own.
// Its zero value is ready.
type Splitter struct{ rest string }

// Add takes more text and returns the clauses that are complete: those whose
// closing mark is followed by white space, where their writing has any. The
// white space around them is left out.
func (s *Splitter) Add(text string) []string {
	s.rest += text
	var whole []string
	from, space := 0, 0 // of the clause; and behind its last white space
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
		case i-from < shortest:
		case ends(r, s.rest[end:]):
			cut(end)
		case end-from > longest && space-from > shortest:
			cut(space)
		}
		i = end
	}
	s.rest = s.rest[from:]
	return whole
}

// ends tells whether a rune closes a clause before rest.
func ends(r rune, rest string) bool {
	switch {
	case r == '\n', strings.ContainsRune(dense, r):
		return true
	case !strings.ContainsRune(marks, r) || rest == "":
		return false
	}
	return strings.ContainsAny(rest[:1], " \n\t")
}

// End returns what is left.
func (s *Splitter) End() string {
	rest := strings.TrimSpace(s.rest)
	s.rest = ""
	return rest
}
