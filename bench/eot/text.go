// Package eot trains the end-of-turn model (pipeline/eot/model) on transcripts and measures it on
// other transcripts. A place is the position after a word, at which the model estimates whether
// the turn ends.
package eot

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// A Kind tells what is known about a place.
type Kind uint8

// Kinds of places.
const (
	Open    Kind = iota // the words so far are incomplete
	Inside              // a place inside a clause, without punctuation
	Going               // a place before a word that can continue a complete clause
	Comma               // a comma
	Closing             // the end of a sentence that another sentence follows
	End                 // end of the utterance
)

// going lists words that can continue a complete clause.
const going = "and but because so if or when while though although unless until since before after where which who that as then " +
	"to in on at for with from by about " +
	"into near around without during between through of than like please thanks thank today " +
	"tomorrow tonight yesterday again now too also anymore instead right maybe"

// A Line is one utterance.
type Line struct {
	Words []string // classes of the words
	Kinds []Kind   // kinds of the places after the words
}

// Lines reads utterances, one per line, with or without punctuation.
func Lines(r io.Reader) ([]Line, error) {
	var all []Line
	said := map[string]bool{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		l := parse(in.Text(), Inside)
		if key := strings.Join(l.Words, " "); len(l.Words) > 0 && !said[key] {
			said[key] = true
			all = append(all, l)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("failed to read the transcripts: %w", err)
	}
	return all, nil
}

// parse splits a line. Places without punctuation get the kind between.
func parse(text string, between Kind) Line {
	var l Line
	text = strings.NewReplacer("’", "'", "`", "'", "…", ". ", "&", " and ", "%", " percent ", "/", " ", "--", ", ").
		Replace(strings.ToLower(text))
	for f := range strings.FieldsSeq(text) {
		bare := strings.Trim(f, ".,?!-–—:;\"'*()[]<>{}$£€#+=~_|")
		k := max(between, marked(f, bare))
		if bare != "" {
			l.add(bare, k, between)
		} else if n := len(l.Kinds); n > 0 {
			l.Kinds[n-1] = max(l.Kinds[n-1], k)
		}
	}
	if n := len(l.Kinds); n > 0 {
		l.Kinds[n-1] = End
	}
	return l
}

// add appends a word and the kind of the place after it.
func (l *Line) add(word string, after, between Kind) {
	n := len(l.Words)
	w, tail := model.Split(word)
	w = model.Class(w)
	switch {
	case n == 0:
	case w == model.Number && l.Words[n-1] == w:
		l.Kinds[n-1] = after
		return
	case between == Inside && l.Kinds[n-1] == Inside && strings.Contains(" "+going+" ", " "+w+" "):
		l.Kinds[n-1] = Going
	}
	if l.Words = append(l.Words, w); tail != "" {
		l.Words, l.Kinds = append(l.Words, tail), append(l.Kinds, between)
	}
	l.Kinds = append(l.Kinds, after)
}

// marked returns the kind of place that the punctuation after a word implies.
func marked(word, bare string) Kind {
	last := word[len(word)-1]
	switch {
	case last == '~':
		return Inside
	case last == '.' && abbreviated(bare):
		return Open
	case strings.IndexByte(".?!", last) >= 0, strings.HasSuffix(word, ".\""), strings.HasSuffix(word, ".)"):
		return Closing
	case strings.IndexByte(",;:", last) >= 0:
		return Comma
	default:
		return Open
	}
}

func abbreviated(w string) bool {
	return len(w) > 0 && strings.Contains(" dr mr mrs ms st ave no vs jr sr etc a.m p.m a.m. p.m. u.s e.g i.e ", " "+w+" ")
}

// sentences returns the sentences of a line as lines of their own; none if the line has only one.
func (l Line) sentences() []Line {
	var all []Line
	from := 0
	for i, k := range l.Kinds {
		if k == Closing || k == End && from > 0 {
			s := Line{l.Words[from : i+1], append([]Kind{}, l.Kinds[from:i+1]...)}
			s.Kinds[i-from] = End
			all, from = append(all, s), i+1
		}
	}
	return all
}
