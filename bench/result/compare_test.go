package result

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-voice/parley/bench/stat"
)

// run returns a result file. longer is by how many ms turns took longer, dead is how many turns
// had no answer, and perSecond is the rate of answers.
func run(seed uint64, longer float64, dead int, perSecond float64) *File {
	f := &File{Format: Format, Command: "turns"}
	rng := rand.New(rand.NewPCG(seed, 1))
	var values []float64
	for range 400 {
		values = append(values, 400+longer+30*rng.Float64())
	}
	f.Add(Spread("turn_ms", "turn_ms", "ms", values, Most("p95", 490)))
	f.Add(Share("dead_turns", "turns without an answer", dead, 400, Most("times", 0)))
	m := Figure("per_second", "answers", "/s", stat.Estimate{Value: perSecond, Low: perSecond - 5, High: perSecond + 5})
	m.More = true
	f.Add(m)
	return f
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		b         *File
		tolerance float64
		fails     bool
		says      string
	}{
		"the same":                {run(2, 0, 0, 500), 0, false, "noise"},
		"slower":                  {run(2, 60, 0, 500), .05, true, "WORSE"},
		"slower, but tolerated":   {run(2, 10, 0, 500), .05, false, "worse, within tolerance"},
		"faster":                  {run(2, -60, 0, 500), 0, false, "better"},
		"many are dead":           {run(2, 0, 40, 500), .05, true, "WORSE"},
		"fewer a second is worse": {run(2, 0, 0, 400), .05, true, "WORSE"},
		"more a second is better": {run(2, 0, 0, 600), .05, false, "better"},
	} {
		var out bytes.Buffer
		err := WriteComparison(&out, run(1, 0, 0, 500), c.b, c.tolerance)
		if (err != nil) != c.fails || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: got %v\n%s", name, err, out.String())
		}
	}
	unmeasured := &File{Format: Format, Command: "turns", Options: []byte(`{"Calls":7}`)}
	unmeasured.Add(Spread("turn_ms", "turn_ms", "ms", nil, Most("p95", 490)))
	unmeasured.Add(Share("dead_turns", "turns without an answer", 0, 400, Most("times", 0)))
	var out bytes.Buffer
	if err := WriteComparison(&out, run(1, 0, 0, 500), unmeasured, 1); err == nil || !strings.Contains(err.Error(), "1 figures with a target are no longer measured") ||
		!strings.Contains(out.String(), "answers: not measured in B") || !strings.Contains(out.String(), "different options") {
		t.Errorf("got %v, want a report of the unmeasured figure:\n%s", err, out.String())
	}
	refused, other := run(2, 0, 0, 500), run(2, 0, 0, 500)
	refused.Refuse("too late")
	other.Command = "load"
	for _, b := range []*File{refused, other, {Format: Format, Command: "turns"}} {
		if err := WriteComparison(&bytes.Buffer{}, run(1, 0, 0, 500), b, 1); err == nil {
			t.Errorf("got a comparison with %+v, want an error", b)
		}
	}
}

func TestGate(t *testing.T) {
	refused := run(1, 0, 0, 500)
	refused.Refuse("too late")
	empty := &File{Format: Format, Command: "turns"}
	empty.Add(Spread("turn_ms", "turn_ms", "ms", nil, Most("p95", 490)))
	for name, c := range map[string]struct {
		f       *File
		rule    Rule
		targets bool
		fails   bool
		says    string
	}{
		"kept":                     {run(1, 0, 0, 500), Rule{"turn_ms", 0, Most("p95", 490)}, false, false, "ok      bench turns: turn_ms p95 ≤ 490: got 4"},
		"not kept":                 {run(1, 100, 0, 500), Rule{"turn_ms", 0, Most("p95", 490)}, false, true, "FAILED  bench turns: turn_ms p95 ≤ 490: got 5"},
		"at least":                 {run(1, 0, 0, 500), Rule{"per_second", 0, Least("value", 501)}, false, true, "FAILED"},
		"an unknown metric":        {run(1, 0, 0, 500), Rule{"turn_mz", 0, Most("p95", 490)}, false, true, "no file has this metric"},
		"at another load":          {run(1, 0, 0, 500), Rule{"turn_ms", 50, Most("p95", 490)}, false, true, "turn_ms@50 p95 ≤ 490: no file has this metric"},
		"an unknown figure":        {run(1, 0, 0, 500), Rule{"turn_ms", 0, Most("p42", 490)}, false, true, "unknown figure; accepted are p50, p90"},
		"nothing was measured":     {empty, Rule{"turn_ms", 0, Most("p95", 490)}, false, true, "turn_ms p95 ≤ 490: not measured"},
		"targets":                  {run(1, 0, 1, 500), Rule{"turn_ms", 0, Most("p95", 490)}, true, true, "FAILED  bench turns: dead_turns, target times ≤ 0: 1 of 400"},
		"a run that was refused":   {refused, Rule{"turn_ms", 0, Most("p95", 490)}, false, true, "too late"},
		"targets, all of them met": {run(1, 0, 0, 500), Rule{"turn_ms", 0, Most("p95", 490)}, true, false, "dead_turns"},
	} {
		var out bytes.Buffer
		err := Gate(&out, []*File{c.f}, []Rule{c.rule}, c.targets)
		if (err != nil) != c.fails || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: got %v\n%s", name, err, out.String())
		}
	}
	if Gate(&bytes.Buffer{}, []*File{run(1, 0, 0, 500)}, nil, false) == nil {
		t.Error("got no error without rules, want one")
	}
}
