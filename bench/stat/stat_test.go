package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, c := range []struct {
		of   []float64
		p    float64
		want float64
	}{
		{nil, .5, 0},
		{[]float64{7}, .99, 7},
		{[]float64{1, 2}, .5, 1},
		{hundred, .5, 50},
		{hundred, .95, 95},
		{hundred, .99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := Quantile(c.of, c.p); got != c.want {
			t.Errorf("%v-quantile of %d values: got %v, want %v", c.p, len(c.of), got, c.want)
		}
	}
}

// TestIntervalsHold checks that an interval contains its estimate, and that the ends of the
// interval are values of the sample.
func TestIntervalsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-100, 1e5), 1, 200).Draw(t, "values")
		s := Summarize(values)
		for name, e := range map[string]Estimate{"p50": s.P50, "p90": s.P90, "p95": s.P95, "p99": s.P99, "max": s.Max} {
			if e.Low > e.Value || e.High < e.Value {
				t.Errorf("%s: got %v, interval %v to %v", name, e.Value, e.Low, e.High)
			}
			for _, v := range []float64{e.Value, e.Low, e.High} {
				if !slices.Contains(values, v) {
					t.Errorf("%s: %v is not a sample value", name, v)
				}
			}
		}
		if s != Summarize(values) {
			t.Error("equal samples gave different results")
		}
	})
}

// TestIntervalsCover checks that about 95 of 100 intervals contain the true value.
func TestIntervalsCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	held := 0
	const samples = 200
	for range samples {
		values := make([]float64, 300)
		for i := range values {
			values[i] = rng.ExpFloat64()
		}
		slices.Sort(values)
		low, high := interval(len(values), .95, func(i int) float64 { return values[i] })
		if truth := -math.Log(.05); low <= truth && truth <= high {
			held++
		}
	}
	if share := float64(held) / samples; share < .87 || share > .98 {
		t.Errorf("got %v of the intervals with the true value", share)
	}
}

func TestShare(t *testing.T) {
	if s := Share(0, 300); s.Value != 0 || s.Low != 0 || s.High < .01 || s.High > .02 {
		t.Errorf("0 of 300: got %v", s)
	}
	if s := Share(0, 0); s.High != 1 {
		t.Errorf("no values: got %v", s)
	}
	if s := Share(50, 100); s.Value != .5 || s.Low < .39 || s.High > .61 {
		t.Errorf("50 of 100: got %v", s)
	}
}

func TestHistogramIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e5), 0, 100).Draw(t, "values")
		text, err := json.Marshal(Collect(values))
		if err != nil {
			t.Fatal(err)
		}
		var h Histogram
		if err := json.Unmarshal(text, &h); err != nil {
			t.Fatal(err)
		}
		slices.Sort(values)
		if h.N() != len(values) {
			t.Fatalf("got %d values, want %d", h.N(), len(values))
		}
		for _, p := range []float64{.5, .95, 1} {
			if got, want := h.Quantile(p), Quantile(values, p); math.Abs(got-want) > want/500+.002 {
				t.Errorf("%v-quantile: got %v, want %v", p, got, want)
			}
		}
		if steps := h.Steps(); len(values) > 0 && steps[len(steps)-1].Share != 1 {
			t.Errorf("got last step %v", steps[len(steps)-1])
		}
	})
}

func TestDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sample := func(shift float64) Histogram {
		values := make([]float64, 500)
		for i := range values {
			values[i] = 400 + shift + 20*rng.Float64()
		}
		return Collect(values)
	}
	a := sample(0)
	if d := Differ(a, sample(0), .95); d.Low > 0 || d.High < 0 {
		t.Errorf("equal distributions: got difference %v", d)
	}
	if d := Differ(a, sample(5), .95); d.Low < 2 || d.High > 8 {
		t.Errorf("5 ms more: got %v", d)
	}
	if d := Differ(a, Histogram{}, .95); !math.IsInf(d.High, 1) {
		t.Errorf("no values: got %v", d)
	}
}

func FuzzHistogram(f *testing.F) {
	text, err := Collect([]float64{1, 2, 400}).MarshalText()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("SElTVEZBQUFBRFg0MkpOcG1TeE1aR0JrWUdCZ0FHSkdJR1JpWUdBQ2dBQW9BQUdBQQ=="))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		var h Histogram
		if h.UnmarshalText(text) == nil {
			_ = h.Quantile(.5)
		}
	})
}
