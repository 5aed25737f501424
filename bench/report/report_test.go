package report

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/bench/result"
)

// sample returns a result with metrics of each kind, a turn and a reason for refusal.
func sample() *result.File {
	f := &result.File{Format: result.Format, Command: "load", Commit: "abc"}
	var values []float64
	for i := range 100 {
		values = append(values, float64(400+i))
	}
	f.Add(result.Spread("turn_ms", "turn_ms <plain>", "ms", values, result.Most("p50", 450), result.Most("p95", 490)))
	f.Add(result.Share("dead_turns", "turns without an answer", 0, 100, result.Most("times", 0)))
	for _, calls := range []int{1, 50, 500} {
		m := result.Spread("ear_overhead_ms", "overhead", "ms", values)
		m.Calls = calls
		f.Add(m)
	}
	a := result.Figure("overhead_above_ms", "above", "ms", result.Exactly(12), result.Most("value", 10))
	a.Calls = 500
	f.Add(a)
	f.Turns = []result.Turn{{
		Call: "c1", Number: 2, Text: "<script>alert(1)</script>", Figures: map[string]float64{"wire_ms": 480},
		Phases: []result.Phase{{Name: "vad", MS: 180}, {Name: "llm", MS: 200}, {Name: "out", MS: 20}}, Sound: []byte("RIFF"),
	}}
	f.Refuse("the load generator was the bottleneck")
	return f
}

// TestPage checks that the page is complete and self-contained, and escapes all text.
func TestPage(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, []*result.File{sample()}); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"turn_ms &lt;plain&gt;", "&lt;script&gt;", "Refused.", `src="data:audio/wav;base64,UklGRg=="`, `class="b1"`, "overhead mouth to ear, ms", "target value ≤ 10", "</html>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is missing on the page", want)
		}
	}
	for _, not := range []string{"http://", "https://", "<script", "@import", "ZgotmplZ", "NaN", "Inf"} {
		if strings.Contains(page, not) {
			t.Errorf("page contains %s", not)
		}
	}
}

func TestFill(t *testing.T) {
	page := []byte("# Benchmarks\n\n" + begin + "outdated\n" + end + "\nmore\n")
	filled, err := Fill(page, []*result.File{sample()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Benchmarks", "more\n", "| increase of the p95 overhead mouth to ear from 1 call to 500 calls, ms | value ≤ 10 | 12 | 1 | refused |", "| stale answers | times ≤ 0 |  | 0 | not measured |", "**Refused**"} {
		if !strings.Contains(string(filled), want) {
			t.Errorf("missing %q in\n%s", want, filled)
		}
	}
	if strings.Contains(string(filled), "outdated") {
		t.Error("got the outdated text, want it replaced")
	}
	if again, err := Fill(filled, []*result.File{sample()}); err != nil || !bytes.Equal(again, filled) {
		t.Errorf("Fill is not idempotent: %v", err)
	}
	for _, page := range []string{"", begin, end} {
		if _, err := Fill([]byte(page), nil); err == nil {
			t.Errorf("%q: got no error, want one", page)
		}
	}
}

// TestScale checks that labels and lines stay within the axes.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.Float64Range(0, 1e7).Draw(t, "top")
		at, labels := scale(top, left, right)
		if at(0) != left || at(top) > right+.01 || len(labels) < 2 || len(labels) > 7 || labels[0].At != left || labels[len(labels)-1].At > right+.01 {
			t.Errorf("got 0 at %v, %v at %v; labels %v", at(0), top, at(top), labels)
		}
	})
}
