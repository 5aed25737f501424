package clause

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

// TestSplitterLosesNothing: however text comes, all of it is spoken once.
func TestSplitterLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé .?!…;:\n]{0,200}`).Draw(t, "text")
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
