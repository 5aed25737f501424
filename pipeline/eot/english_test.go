package eot

import (
	"os"
	"strings"
	"testing"
)

// pauses returns the words before each pause of sentences that are not in the training data. inside has the pauses
// within a clause (/), after those at possible ends (|), and ends the whole sentences.
func pauses(t *testing.T, file string) (inside, after, ends []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var said []string
		for w := range strings.FieldsSeq(line) {
			switch w {
			case "/":
				inside = append(inside, strings.Join(said, " "))
			case "|":
				after = append(after, strings.Join(said, " "))
			default:
				said = append(said, w)
			}
		}
		ends = append(ends, strings.Join(said, " "))
	}
	return inside, after, ends
}

// TestEnglish checks that the share of wrong guesses is small, within clauses and at ends.
func TestEnglish(t *testing.T) {
	for file, most := range map[string][3]float64{"pauses.txt": {4.5, 8, 4}, "calls.txt": {4.5, 8, 5}} {
		inside, after, ends := pauses(t, file)
		if len(inside) < 200 || len(after) < 50 || len(ends) < 120 {
			t.Fatalf("%d pauses inside, %d after, %d ends", len(inside), len(after), len(ends))
		}
		i, a, e := wrong(t, inside, false), wrong(t, after, true), wrong(t, ends, true)
		t.Logf("%s, taken wrongly: %.1f %% of %d pauses inside, %.1f %% of %d after, %.1f %% of %d ends", file, i, len(inside), a, len(after), e, len(ends))
		if i > most[0] || a > most[1] || e > most[2] {
			t.Error("too many")
		}
	}
}

// wrong returns the percentage of misclassified texts.
func wrong(t *testing.T, texts []string, finished bool) float64 {
	t.Helper()
	n := 0
	for _, text := range texts {
		if g := (Pause{Text: text}).Guess(); (g.P >= 0.6) != finished {
			n++
			t.Logf("%q: %+v, finished: %v", text, g, finished)
		}
	}
	return 100 * float64(n) / float64(len(texts))
}

// TestMayContinue checks that a period is not enough after words with which people seldom end a turn.
func TestMayContinue(t *testing.T) {
	const asked = "Can you tell me what happened?"
	for _, c := range []struct {
		Pause
		reason string
	}{
		{Pause{Text: "So, I was at work.", Asked: asked}, "may_continue"},
		{Pause{Text: "Okay.", Asked: "What brings you in?"}, "may_continue"},
		{Pause{Text: "It was on Friday.", Asked: "When was it?"}, "sentence_ended"},
		{Pause{Text: "My car broke down.", Asked: "How can I help you?"}, "sentence_ended"},
		{Pause{Text: "So, I was at work."}, "sentence_ended"}, // the agent has said nothing
		{Pause{Text: "So, I was at work.", Asked: asked, Language: "de"}, "sentence_ended"},
	} {
		g := c.Guess()
		if low := g.P >= 0.3 && g.P < 0.6; g.Reason != c.reason || low != (c.reason == "may_continue") {
			t.Errorf("%q after %q: %+v, want %s", c.Text, c.Asked, g, c.reason)
		}
	}
}
