package result

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-voice/parley/bench/stat"
)

func TestVerdicts(t *testing.T) {
	values := []float64{10, 20, 30, 40}
	for name, c := range map[string]struct {
		m    Metric
		want string
	}{
		"no target":              {Spread("x", "x", "ms", values), ""},
		"kept":                   {Spread("x", "x", "ms", values, Most("p50", 20), Most("max", 40)), Met},
		"one of two missed":      {Spread("x", "x", "ms", values, Most("p50", 20), Most("max", 39)), Missed},
		"nothing was measured":   {Spread("x", "x", "ms", nil, Most("p50", 20)), Unknown},
		"an unknown figure":      {Spread("x", "x", "ms", values, Most("share", 20)), Unknown},
		"a share":                {Share("x", "x", 3, 100, Most("share", 3)), Met},
		"a share that is missed": {Share("x", "x", 4, 100, Most("share", 3)), Missed},
		"never":                  {Share("x", "x", 0, 5, Most("times", 0)), Met},
		"no cases at all":        {Share("x", "x", 0, 0, Most("times", 0)), Unknown},
		"at least":               {Figure("x", "x", "/s", Exactly(500), Least("value", 500)), Met},
		"below the minimum":      {Figure("x", "x", "/s", Exactly(499), Least("value", 500)), Missed},
	} {
		var f File
		f.Add(c.m)
		if got := f.Metrics[0].Verdict; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestParseBound(t *testing.T) {
	for text, want := range map[string]struct {
		name  string
		calls int
		bound Bound
	}{
		"turn_ms.p95<=490":            {"turn_ms", 0, Most("p95", 490)},
		"orders_per_second.value>=10": {"orders_per_second", 0, Least("value", 10)},
		" overhead_ms@50.p99 <= 1.5 ": {"overhead_ms", 50, Most("p99", 1.5)},
	} {
		name, calls, b, err := ParseBound(text)
		if err != nil || name != want.name || calls != want.calls || b != want.bound {
			t.Errorf("%q: got %s, %d, %v, %v", text, name, calls, b, err)
		}
	}
	for _, text := range []string{"", "turn_ms", "turn_ms.p95", "turn_ms<=5", ".p95<=5", "turn_ms.p95<=fast", "turn_ms.p95<=NaN", "x@.p95<=5", "x@0.p95<=5", "x@-1.p95<=5"} {
		if _, _, b, err := ParseBound(text); err == nil || !strings.Contains(err.Error(), "turn_ms.p95<=490") {
			t.Errorf("%q: got %v, %v", text, b, err)
		}
	}
}

func FuzzParseBound(f *testing.F) {
	f.Add("turn_ms@7.p95<=490")
	f.Fuzz(func(t *testing.T, text string) {
		if name, _, b, err := ParseBound(text); err == nil && (name == "" || b.At == "") {
			t.Errorf("%q: got %q, %v", text, name, b)
		}
	})
}

// TestFile checks that a file survives writing and reading, and that the file of an invalid run
// names the reason.
func TestFile(t *testing.T) {
	f, err := Measure(t.Context(), "turns", "v1", map[string]int{"calls": 3}, func(f *File) error {
		f.Add(Spread("turn_ms", "turn_ms", "ms", []float64{400, 410}, Most("p95", 490)))
		f.Add(Share("dead_turns", "turns without an answer", 0, 2, Most("times", 0)))
		m := Figure("cpu_ms", "CPU", "ms", stat.Estimate{Value: 1, Low: .9, High: 1.1})
		m.Calls = 50
		f.Add(m)
		f.Turns = []Turn{{Call: "plain-0", Figures: map[string]float64{"ear_ms": 470}, Sound: []byte{1, 2}}}
		f.CheckGenerator("ticks", []float64{1, 2, 30}, 10)
		f.CheckGenerator("others", []float64{1}, 10) // the clock with the larger p99 is kept
		return nil
	})
	if err != nil || f.Err() == nil || !strings.Contains(f.Err().Error(), "bottleneck") || f.Noise.During.Load < 0 || f.Machine.Cores == 0 {
		t.Fatalf("got %v: %+v", err, f)
	}
	name := filepath.Join(t.TempDir(), "turns.json")
	if err = f.Write(name); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil || got.Metrics[0].Histogram.N() != 2 || got.Err() == nil || string(got.Turns[0].Sound) != "\x01\x02" {
		t.Errorf("got %v: %+v", err, got)
	}
	if m, ok := got.Find("cpu_ms", 50); !ok || m.Key() != "cpu_ms@50" || !reflect.DeepEqual(m.Figure, &stat.Estimate{Value: 1, Low: .9, High: 1.1}) {
		t.Errorf("%+v", m)
	}
	if _, ok := got.Find("cpu_ms", 0); ok {
		t.Error("Find ignored the load")
	}
	var out bytes.Buffer
	if err = errors.Join(got.Table(&out), got.WriteConditions(&out)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"turn_ms", "p95 ≤ 490", "met", "CPU, 50 calls", "REFUSED", "30 (p99)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("missing %q in\n%s", want, out.String())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "[]", `{"format":2}`, `{"format":1,"metrics":[{"hdr":"x"}]}`} {
		if f, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q: got %+v", text, f)
		}
	}
}

// TestMeasureEnds checks that the measurement of noise ends if the run fails.
func TestMeasureEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken")
	if _, err := Measure(ctx, "x", "v1", nil, func(*File) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}
