package result

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/parley-voice/parley/bench/stat"
)

// A Difference is the change of one figure from run A to run B.
type Difference struct {
	Metric Metric // metric of run B
	At     string
	A, B   float64
	By     stat.Estimate
	// Worse and Better are set if the 95 % interval of the difference excludes 0. They respect Metric.More.
	Worse, Better bool
}

// Compare returns the differences of the metrics that both files have: p50 and
// p95 of spreads, shares of counts, and figures.
func Compare(a, b *File) []Difference {
	var all []Difference
	for _, m := range b.Metrics {
		o, ok := a.Find(m.Name, m.Calls)
		if !ok || o.N() == 0 || m.N() == 0 {
			continue
		}
		switch {
		case m.Spread != nil && o.Spread != nil && m.Histogram != nil && o.Histogram != nil:
			all = append(all, differ(o, m, "p50", stat.Differ(*o.Histogram, *m.Histogram, .5)),
				differ(o, m, "p95", stat.Differ(*o.Histogram, *m.Histogram, .95)))
		case m.Count != nil && o.Count != nil:
			all = append(all, differ(o, m, "share", difference(o, m, "share")))
		case m.Figure != nil && o.Figure != nil:
			all = append(all, differ(o, m, "value", difference(o, m, "value")))
		}
	}
	return all
}

// lostMetrics returns the metrics that were measured in a but not in b. missed is how many of
// them have a target in b.
func lostMetrics(a, b *File) (all []Metric, missed int) {
	for _, m := range a.Metrics {
		o, ok := b.Find(m.Name, m.Calls)
		if m.N() == 0 || ok && o.N() > 0 {
			continue
		}
		all = append(all, m)
		if len(o.Bounds) > 0 {
			missed++
		}
	}
	return all, missed
}

// difference returns the difference of two independent estimates.
func difference(a, b Metric, at string) stat.Estimate {
	x, _ := a.At(at) // both files have the value
	y, _ := b.At(at)
	by := y.Value - x.Value
	down, up := math.Hypot(y.Value-y.Low, x.High-x.Value), math.Hypot(y.High-y.Value, x.Value-x.Low)
	return stat.Estimate{Value: by, Low: by - down, High: by + up}
}

func differ(a, b Metric, at string, by stat.Estimate) Difference {
	x, _ := a.At(at)
	y, _ := b.At(at)
	d := Difference{Metric: b, At: at, A: x.Value, B: y.Value, By: by}
	d.Worse, d.Better = by.Low > 0, by.High < 0
	if b.More {
		d.Worse, d.Better = d.Better, d.Worse
	}
	return d
}

// Regressed reports whether run B is significantly worse than run A, and by more than tolerance,
// a share of A. For a figure without an interval, tolerance alone decides.
func (d Difference) Regressed(tolerance float64) bool {
	return d.Worse && math.Abs(d.By.Value) > tolerance*math.Abs(d.A)
}

func (d Difference) verdict(tolerance float64) string {
	switch {
	case d.Regressed(tolerance):
		return "WORSE"
	case d.Worse:
		return "worse, within tolerance"
	case d.Better:
		return "better"
	default:
		return "noise"
	}
}

// WriteComparison prints the differences. It returns an error if the runs cannot be compared, if
// a figure has regressed, or if b no longer has a figure with a target that a has.
func WriteComparison(out io.Writer, a, b *File, tolerance float64) error {
	if a.Command != b.Command {
		return fmt.Errorf("cannot compare results of bench %s and bench %s", a.Command, b.Command)
	}
	for _, f := range []*File{a, b} {
		if err := f.Err(); err != nil {
			return err
		}
	}
	if a.Machine != b.Machine {
		fmt.Fprintf(out, "different machines: %+v and %+v\n", a.Machine, b.Machine)
	}
	if !SameOptions(a.Options, b.Options) {
		fmt.Fprintf(out, "different options: %s and %s\n", a.Options, b.Options)
	}
	all := Compare(a, b)
	if len(all) == 0 {
		return fmt.Errorf("the results have no metric in common")
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\t\tA\tB\tB − A\t(95%)\t\t")
	regressions := 0
	for _, d := range all {
		if d.Regressed(tolerance) {
			regressions++
		}
		fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%s\t(%s to %s)\t%s\t\n", d.Metric.What, d.Metric.load(), d.At, Number(d.A), d.Metric.Amount(d.B),
			signed(d.By.Value), signed(d.By.Low), signed(d.By.High), d.verdict(tolerance))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	gone, missed := lostMetrics(a, b)
	for _, m := range gone {
		fmt.Fprintf(out, "%s%s: not measured in B\n", m.What, m.load())
	}
	if missed > 0 {
		return fmt.Errorf("%d figures with a target are no longer measured", missed)
	}
	if regressions > 0 {
		return fmt.Errorf("%d of %d figures are significantly worse, by more than %s%%", regressions, len(all), Number(100*tolerance))
	}
	return nil
}

func signed(v float64) string {
	if v > 0 {
		return "+" + Number(v)
	}
	return Number(v)
}
