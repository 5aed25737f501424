package result

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Rule is a bound on a metric.
type Rule struct {
	Name  string // name of the metric
	Calls int    // load; 0 if the metric has none
	Bound Bound
}

func (r Rule) metric() string { return Metric{Name: r.Name, Calls: r.Calls}.Key() }

// Gate checks files against rules and prints a line for each. It returns an error unless all
// rules hold and all files are valid. A rule needs its metric in at least one file and applies to
// each file that has it. With targets, every metric must also meet its own target.
func Gate(out io.Writer, files []*File, rules []Rule, targets bool) error {
	g := gate{out: out}
	for _, f := range files {
		if err := f.Err(); err != nil {
			g.say(false, "bench %s: %v", f.Command, err)
		}
	}
	for _, r := range rules {
		g.rule(files, r)
	}
	for _, f := range files {
		for _, m := range f.Metrics {
			if targets && len(m.Bounds) > 0 {
				g.say(m.Judge() == Met, "bench %s: %s, target %s: %s", f.Command, m.Key(), m.Target(), m.Short())
			}
		}
	}
	switch {
	case g.held == 0:
		return errors.New("nothing to check: give a bound, or --targets")
	case g.failed > 0:
		return fmt.Errorf("%d of %d bounds failed", g.failed, g.held)
	default:
		return nil
	}
}

type gate struct {
	out          io.Writer
	failed, held int
}

func (g *gate) say(ok bool, format string, args ...any) {
	word := "ok    "
	if g.held++; !ok {
		word = "FAILED"
		g.failed++
	}
	fmt.Fprintf(g.out, "%s  %s\n", word, fmt.Sprintf(format, args...))
}

func (g *gate) rule(files []*File, r Rule) {
	found := false
	for _, f := range files {
		m, ok := f.Find(r.Name, r.Calls)
		if !ok {
			continue
		}
		found = true
		holds, known := r.Bound.Holds(m)
		switch {
		case known:
			e, _ := m.At(r.Bound.At) // the value is known
			g.say(holds, "bench %s: %s %s: got %s", f.Command, r.metric(), r.Bound, m.Amount(e.Value))
		case !slices.Contains(m.Figures(), r.Bound.At):
			g.say(false, "bench %s: %s %s: unknown figure; accepted are %s", f.Command, r.metric(), r.Bound, strings.Join(m.Figures(), ", "))
		default:
			g.say(false, "bench %s: %s %s: not measured", f.Command, r.metric(), r.Bound)
		}
	}
	if !found {
		g.say(false, "%s %s: no file has this metric", r.metric(), r.Bound)
	}
}

// Short returns the measured values as text. For a spread these are the quantiles with bounds, or
// else p50, p95 and p99.
func (m Metric) Short() string {
	switch {
	case m.N() == 0:
		return "not measured"
	case m.Spread != nil:
		var parts []string
		at := []string{"p50", "p95", "p99"}
		if len(m.Bounds) > 0 {
			at = nil
			for _, b := range m.Bounds {
				at = append(at, b.At)
			}
		}
		for _, name := range at {
			if e, ok := m.At(name); ok {
				parts = append(parts, name+" "+Number(e.Value))
			}
		}
		return fmt.Sprintf("%s %s, n = %d", strings.Join(parts, ", "), m.Unit, m.Spread.N)
	case m.Count != nil:
		return fmt.Sprintf("%d of %d", m.Count.Times, m.Count.N)
	default:
		return m.Amount(m.Figure.Value)
	}
}
