// Package clause cuts text that streams into clauses.
package clause

import (
	"strings"
	"unicode/utf8"
)

// shortest is how many bytes a clause has at least: shorter ones are spoken
// with the next, for a voice asked for crumbs sounds like one that reads crumbs.
const shortest = 12

// A Splitter cuts streamed text into clauses that can be spoken on their own.
// Its zero value is ready.
type Splitter struct{ rest string }

// Add takes more text and returns the clauses that are complete: those whose
// closing mark is followed by white space. The white space around them is left
// out.
func (s *Splitter) Add(text string) []string {
	s.rest += text
	var whole []string
	from := 0
	for i, r := range s.rest {
		if !strings.ContainsRune(".?!…;:\n", r) || i-from < shortest {
			continue
		}
		end := i + utf8.RuneLen(r)
		if end == len(s.rest) || r != '\n' && !strings.ContainsAny(s.rest[end:end+1], " \n\t") {
			continue
		}
		if c := strings.TrimSpace(s.rest[from:end]); c != "" {
			whole = append(whole, c)
		}
		from = end
	}
	s.rest = s.rest[from:]
	return whole
}

// End returns what is left.
func (s *Splitter) End() string {
	rest := strings.TrimSpace(s.rest)
	s.rest = ""
	return rest
}
