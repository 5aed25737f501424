package store

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
)

// A pack of a transcript has two lists: packedLine as JSON, and turns as GET /v1/calls/{id}/turns returns them.

// packedLine is a transcript line without data that nobody reads. Times are in milliseconds, as the API shows them.
type packedLine struct {
	Role        pipeline.Role `json:"r"`
	Text        string        `json:"t"`
	Start       int64         `json:"s"`
	End         int64         `json:"e"`
	Turn        int           `json:"n"`
	Interrupted bool          `json:"i,omitempty"`
	// Times has two numbers for each word: the time from the end of the previous word (from Start for the first word)
	// to the start of the word, and its duration.
	Times []int64 `json:"w,omitempty"`
	// Words are the words, if they are not those of Text.
	Words []string `json:"x,omitempty"`
}

// millis rounds as package callview does, so that the API shows the same number.
func millis(d time.Duration) int64 { return int64(math.Round(d.Seconds() * 1000)) }

func shorten(l pipeline.Line) packedLine {
	p := packedLine{Role: l.Role, Text: l.Text, Start: millis(l.Start), End: millis(l.End), Turn: l.Turn, Interrupted: l.Interrupted}
	at := p.Start
	for _, w := range l.Words {
		start, end := millis(w.Start), millis(w.End)
		p.Times, p.Words, at = append(p.Times, start-at, end-start), append(p.Words, w.Text), end
	}
	if slices.Equal(p.Words, strings.Fields(p.Text)) {
		p.Words = nil
	}
	return p
}

func (p packedLine) line() (pipeline.Line, error) {
	const ms = time.Millisecond
	l := pipeline.Line{
		Role: p.Role, Text: p.Text, Start: time.Duration(p.Start) * ms, End: time.Duration(p.End) * ms, Turn: p.Turn, Interrupted: p.Interrupted,
	}
	words, at := p.Words, p.Start
	if words == nil && p.Times != nil {
		words = strings.Fields(p.Text)
	}
	if len(p.Times) != 2*len(words) {
		return l, fmt.Errorf("a transcript line has %d times for %d words; want two per word", len(p.Times), len(words))
	}
	for i, text := range words {
		start := at + p.Times[2*i]
		at = start + p.Times[2*i+1]
		l.Words = append(l.Words, pipeline.Word{Text: text, Start: time.Duration(start) * ms, End: time.Duration(at) * ms})
	}
	return l, nil
}

func packTranscript(lines []pipeline.Line, turns []pipeline.Turn) ([]byte, error) {
	short := make([]packedLine, len(lines))
	for i, l := range lines {
		short[i] = shorten(l)
	}
	first, err := marshalEach(short)
	if err != nil {
		return nil, err
	}
	second, err := marshalEach(turns)
	if err != nil {
		return nil, err
	}
	return db.Pack(first, second)
}

func unpackTranscript(pack []byte) (w control.Transcript, err error) {
	lists, err := db.Unpack(pack)
	if err == nil && len(lists) != 2 {
		err = fmt.Errorf("the pack has %d lists", len(lists))
	}
	if err != nil {
		return w, err
	}
	w = control.Transcript{Lines: make([]pipeline.Line, len(lists[0])), Turns: make([]json.RawMessage, len(lists[1]))}
	for i, text := range lists[0] {
		var p packedLine
		if err = json.Unmarshal(text, &p); err == nil {
			w.Lines[i], err = p.line()
		}
		if err != nil {
			return control.Transcript{}, err
		}
	}
	for i, text := range lists[1] {
		w.Turns[i] = text
	}
	return w, nil
}

// marshalEach returns the JSON of each item.
func marshalEach[T any](all []T) ([][]byte, error) {
	texts := make([][]byte, len(all))
	for i, v := range all {
		var err error
		if texts[i], err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return texts, nil
}
