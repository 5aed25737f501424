package tts

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitter(t *testing.T) {
	var s Splitter
	var got []string
	for _, piece := range []string{"Hello there, fri", "end. It costs 3.5 euro", "s! Is", " that all right? Ok. Yes"} {
		got = append(got, s.Add(piece)...)
	}
	got = append(got, s.End())
	want := []string{"Hello there, friend.", "It costs 3.5 euros!", "Is that all right?", "Ok. Yes"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMarks(t *testing.T) {
	long := strings.Repeat("word ", 60)
	for text, want := range map[string][]string{
		"Good morning. General":       {"Good morning.", "General"},
		"It is 3.5 or 4.5 of them":    {"It is 3.5 or 4.5 of them"},
		"first of all\nsecond":        {"first of all", "second"},
		"आप कैसे हैं। ठीक":            {"आप कैसे हैं।", "ठीक"},
		"كيف حالك اليوم؟ بخير":        {"كيف حالك اليوم؟", "بخير"},
		"今日はいい天気ですね。散歩しましょう":          {"今日はいい天気ですね。", "散歩しましょう"},
		"\xff\xfe. \xff and what not": {"\xff\xfe. \xff and what not"},
		long:                          {strings.TrimSpace(long[:maxClause]), strings.TrimSpace(long[maxClause:])},
		strings.Repeat("x", 300):      {strings.Repeat("x", 300)},
	} {
		var s Splitter
		got := s.Add(text)
		if rest := s.End(); rest != "" {
			got = append(got, rest)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestSplitterLosesNothing checks that the clauses contain all text exactly once.
func TestSplitterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé .?!…;:\n。؟]{0,400}`).Draw(t, "text")
		var s Splitter
		var got []string
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got = append(got, s.Add(string(rest[:n]))...)
			rest = rest[n:]
		}
		got = append(got, s.End())
		if a, b := strings.Join(strings.Fields(strings.Join(got, " ")), " "), strings.Join(strings.Fields(text), " "); strings.ReplaceAll(a, " ", "") != strings.ReplaceAll(b, " ", "") {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// FuzzSplitter checks that no text causes a panic.
func FuzzSplitter(f *testing.F) {
	f.Add("Hello there. ", "3.5\n")
	f.Add("\xff\xfe.", "\xe3\x80")
	f.Fuzz(func(_ *testing.T, a, b string) {
		var s Splitter
		s.Add(a)
		s.Add(b)
		s.End()
	})
}
