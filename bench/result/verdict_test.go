package result

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestVerdictIsShort(t *testing.T) {
	run := func(missed, met int) *File {
		f := &File{Command: "turns"}
		for i := range missed {
			f.Add(Share(fmt.Sprintf("dead_%d", i), fmt.Sprintf("unanswered %d", i), 3, 10, Most("times", 0)))
		}
		for i := range met {
			f.Add(Spread(fmt.Sprintf("turn_%d", i), fmt.Sprintf("turn_ms %d", i), "ms", []float64{410, 420}, Most("p95", 490)))
		}
		f.Add(Spread("none", "never measured", "ms", nil, Most("p95", 490)))
		return f
	}
	refused := run(9, 1)
	refused.Refuse("the far end was late")
	for name, c := range map[string]struct {
		f     *File
		lines int
		want  []string
	}{
		"all met":   {run(0, 3), 4, []string{"bench turns: 3 of 4 targets met, 0 missed, 1 not measured\n", "  turn_ms 0: p95 420 ms, n = 2\n"}},
		"some miss": {run(2, 9), 6, []string{"missed: unanswered 1: 3 of 10 (target times ≤ 0)\n", "  turn_ms 2: "}},
		"refused":   {refused, 6, []string{"refused: the far end was late\n", "6 more: use --verbose\n"}},
	} {
		var out bytes.Buffer
		if err := c.f.WriteVerdict(&out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != c.lines || n > VerdictLines {
			t.Errorf("%s: got %d lines, want %d\n%s", name, n, c.lines, out.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: missing %q in\n%s", name, want, out.String())
			}
		}
	}
}
