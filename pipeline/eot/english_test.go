package eot

import (
	"os"
	"strings"
	"testing"
)

// pauses are sentences that no model was fitted to, with the places where a
// pause stands inside a clause (/) and after what could be all (|).
func pauses(t *testing.T) (inside, after, ends []string) {
	t.Helper()
	b, err := os.ReadFile("testdata/pauses.txt")
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

// TestEnglish: hardly any pause inside a clause is taken for an end, and hardly
// any end for a pause.
func TestEnglish(t *testing.T) {
	inside, after, ends := pauses(t)
	if len(inside) < 200 || len(after) < 70 || len(ends) < 120 {
		t.Fatalf("%d pauses inside, %d after, %d ends", len(inside), len(after), len(ends))
	}
	wrong := func(texts []string, finished bool) float64 {
		n := 0
		for _, text := range texts {
			if g := (Pause{Text: text}).Guess(); (g.P >= 0.6) != finished {
				n++
				t.Logf("%q: %+v, finished: %v", text, g, finished)
			}
		}
		return 100 * float64(n) / float64(len(texts))
	}
	i, a, e := wrong(inside, false), wrong(after, true), wrong(ends, true)
	t.Logf("taken wrongly: %.1f %% of pauses inside, %.1f %% of those after, %.1f %% of ends", i, a, e)
	if i > 4.5 || a > 8 || e > 4 {
		t.Error("too many")
	}
}
