package turns

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
)

// Play runs a scenario, adds the metrics of its expectations to f, and prints whether they hold.
// It returns the number of missed expectations.
func Play(ctx context.Context, out io.Writer, o Options, s *scenario.Scenario, f *result.File) (missed int, err error) {
	o.Scenario, o.Calls = s, s.Calls
	r, err := Run(ctx, o)
	if err != nil {
		return 0, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	fmt.Fprintf(out, "%s: %s\n", s.Name, s.About)
	for _, e := range s.Expect {
		m, b, unknown := r.expected(e)
		if unknown != nil {
			return 0, fmt.Errorf("scenario %s: %w", s.Name, unknown)
		}
		m.Bounds = []result.Bound{b}
		m.Name, m.What = s.Name+"/"+m.Name, s.Name+": "+m.What
		f.Add(m)
		sign := "✓"
		holds, known := b.Holds(m)
		if !holds {
			sign = "✗"
			missed++
		}
		seen := "not measured"
		if v, ok := m.At(b.At); ok && known {
			seen = m.Amount(v.Value)
			if b.At == "times" {
				seen = result.Number(v.Value)
			}
		}
		fmt.Fprintf(out, "  %s %-34s %s, n = %d\n", sign, e, seen, m.N())
	}
	if err = r.explain(out); err != nil {
		return missed, err
	}
	f.CheckGenerator("media clock in "+s.Name, r.Late, MaxLateness)
	rows, err := r.rows()
	f.Turns = append(f.Turns, rows...)
	return missed, err
}

// expected returns the metric and the bound of an expectation such as "turn_ms.p95<=490".
func (r *Report) expected(text string) (m result.Metric, b result.Bound, err error) {
	name, _, b, err := result.ParseBound(text)
	if err != nil {
		return m, b, err
	}
	var names []string
	for _, m := range r.Metrics {
		if m.Name == name && !slices.Contains(m.Figures(), b.At) {
			return m, b, fmt.Errorf("expect %q: unknown figure of %s: accepted are %s", text, name, strings.Join(m.Figures(), ", "))
		}
		if m.Name == name {
			return m, b, nil
		}
		names = append(names, m.Name)
	}
	return m, b, fmt.Errorf("expect %q: unknown metric: accepted are %s", text, strings.Join(names, ", "))
}

// explain prints the turns whose turn_ms differs from the audio, with the reasons.
func (r *Report) explain(out io.Writer) error {
	for _, t := range r.Turns {
		if t.Apart == nil || *t.Apart < agree && *t.Apart > -agree {
			continue
		}
		why := t.Why
		if why == "" {
			why = "unexplained"
		}
		if _, err := fmt.Fprintf(out, "    %s, utterance %d: turn_ms is off by %.0f ms: %s\n", t.Call, t.Number, *t.Apart, why); err != nil {
			return err
		}
	}
	return nil
}
