package model

import (
	"math"
	"strings"
	"testing"
)

func TestMarks(t *testing.T) {
	for text, want := range map[string]struct {
		mark            byte
		sentences, last int
	}{
		"":                          {' ', 1, 0},
		"Yes. I do.":                {'.', 2, 2},
		"Well, it is,":              {',', 1, 3},
		"Is it? No ... I mean":      {' ', 2, 3},
		"it started on - on monday": {' ', 1, 5},
	} {
		if mark, sentences, last := Marks(text); mark != want.mark || sentences != want.sentences || last != want.last {
			t.Errorf("%q: %q, %d sentences, %d words", text, mark, sentences, last)
		}
	}
}

func TestQuestionKind(t *testing.T) {
	for asked, want := range map[string]int{"": 0, "when did it start": 1, "and have you had it before": 2, "okay i see": 3} {
		if got := questionKind(strings.Fields(asked)); got != want {
			t.Errorf("%q: %d, want %d", asked, got, want)
		}
	}
}

// clauses returns a short and the longest kind of clause, with and without punctuation.
func clauses() []Clause {
	long := strings.Fields(strings.Repeat("it's been 5 days since i couldn't sleep ", 30))
	return []Clause{
		{},
		{Words: []string{"no"}, Mark: '.', Sentences: 1, Last: 1},
		{Words: long, Asked: long},
		{Words: long, Asked: long, Mark: '.', Sentences: 9, Last: 8},
	}
}

func TestEnglishTurns(t *testing.T) {
	if _, err := ReadTurns(turns); err != nil {
		t.Fatal(err)
	}
	if n := len(turns); n > 1<<18 {
		t.Errorf("%d bytes", n)
	}
	m := EnglishTurns()
	ended := func(text, asked string) float64 {
		c := Clause{Words: tokensOf(text), Asked: tokensOf(asked)}
		c.Mark, c.Sentences, c.Last = Marks(text)
		return m.End(c)
	}
	for _, c := range []struct{ finished, open, asked string }{
		{"no.", "um.", "do you smoke"},
		{"what does it cost?", "well, i went there.", "anything else"},
		{"thank you.", "okay.", "i will send it to you today"},
	} {
		if a, b := ended(c.finished, c.asked), ended(c.open, c.asked); a <= b {
			t.Errorf("%q: %.2f, %q: %.2f", c.finished, a, c.open, b)
		}
	}
	for _, c := range clauses() {
		if n := len(c.Features(nil)); n > turnFeatures {
			t.Errorf("%d features", n)
		}
		if y := m.End(c); math.IsNaN(y) || math.Abs(y) > 30 {
			t.Errorf("%+v: %v", c, y)
		}
	}
}

// tokensOf returns the words of a lower-case text without punctuation.
func tokensOf(text string) []string {
	return strings.Fields(strings.NewReplacer(".", "", ",", "", "?", "").Replace(text))
}

func TestTurnsAllocateNothing(t *testing.T) {
	m, all := EnglishTurns(), clauses()
	if n := testing.AllocsPerRun(100, func() {
		for _, c := range all {
			m.End(c)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPackTurns(t *testing.T) {
	w := make([]float32, TurnWeights)
	c := clauses()[1]
	for _, f := range c.Features(nil) {
		w[f] = 0.5
	}
	m, err := ReadTurns(string(PackTurns(w, -1)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.End(c), 0.5*float64(len(c.Features(nil)))-1; math.Abs(got-want) > 0.01 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (Turns{}).End(c); got != 0 {
		t.Errorf("zero value: %v", got)
	}
	for _, bad := range []string{"", turns[:100], turns + "x", "x" + turns[1:]} {
		if _, err := ReadTurns(bad); err == nil {
			t.Errorf("%d bytes: accepted", len(bad))
		}
	}
}

func BenchmarkTurns(b *testing.B) {
	all := clauses()
	b.ReportAllocs()
	for b.Loop() {
		EnglishTurns().End(all[3])
	}
}
