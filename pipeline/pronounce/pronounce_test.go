package pronounce

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/pipeline"
)

func spoken() map[string]string {
	return map[string]string{"Parley": "par lay", "SQL": "sequel", "AT&T": "A T and T", "sqlite": "sequel light"}
}

func TestSay(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"parley":                    "par lay",
		"This is Parley, (PARLEY)!": "This is par lay, (par lay)!",
		"parleys and SQLite, SQL.":  "parleys and sequel light, sequel.",
		"AT&T  has\nsql":            "A T and T  has\nsequel",
		"a par of parl":             "a par of parl",
		"ends in a space: parley ":  "ends in a space: par lay ",
		"çparley éSQL":              "çparley éSQL",
	} {
		for cut := range len(text) + 1 {
			if strings.ToValidUTF8(text[:cut], "") != text[:cut] {
				continue
			}
			s := New(spoken())
			if got := s.Write(text[:cut]) + s.Write(text[cut:]) + s.End(); got != want {
				t.Errorf("%q cut at %d: %q, want %q", text, cut, got, want)
			}
		}
	}
	s := New(spoken())
	if got := s.Write("hello wor"); got != "hello wor" {
		t.Errorf("a word without a spoken form is held back: %q", got)
	}
}

// TestRestore checks, for any split of the text, that Restore returns the written words, each with the times of its
// whole spoken form.
func TestRestore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := rapid.SliceOfN(rapid.SampledFrom([]string{"Parley,", "par", "sql", "(SQLite)", "at&t.", "hello", "x"}), 1, 12).Draw(t, "words")
		text := strings.Join(written, " ")
		s := New(spoken())
		said := ""
		for text != "" {
			n := rapid.IntRange(1, len(text)).Draw(t, "cut")
			said += s.Write(text[:n])
			text = text[n:]
		}
		said += s.End()
		var told []pipeline.Word
		for i, w := range strings.Fields(said) {
			told = append(told, s.Restore([]pipeline.Word{{Text: w, Start: time.Duration(i), End: time.Duration(i + 1)}})...)
		}
		var got []string
		last := time.Duration(0)
		for _, w := range told {
			if w.Start != last || w.End <= w.Start {
				t.Fatalf("%q is said from %d to %d, after %d", w.Text, w.Start, w.End, last)
			}
			last = w.End
			got = append(got, w.Text)
		}
		if !slices.Equal(got, written) {
			t.Fatalf("%q came back as %q", written, got)
		}
	})
}

func TestCheck(t *testing.T) {
	if err := Check(spoken()); err != nil {
		t.Error(err)
	}
	for word, as := range map[string]string{"": "x", "two words": "x", "end.": "x", "a": " ", "b": strings.Repeat("x", 201)} {
		if Check(map[string]string{word: as}) == nil {
			t.Errorf("%q: %q is accepted", word, as)
		}
	}
}
