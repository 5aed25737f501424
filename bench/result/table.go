package result

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Table prints all metrics: spreads, counts, and figures.
func (f *File) Table(out io.Writer) error {
	for _, part := range []struct {
		head string
		of   func(Metric) bool
		row  func(Metric) string
	}{
		{"\tn\tp50\tp90\tp95\t(95%)\tp99\tmax\ttarget\t\t", func(m Metric) bool { return m.Spread != nil }, Metric.spread},
		{"counts\tn\ttimes\tshare\t(95%)\ttarget\t\t", func(m Metric) bool { return m.Count != nil }, Metric.share},
		{"figure\t\t(95%)\ttarget\t\t", func(m Metric) bool { return m.Figure != nil }, Metric.figure},
	} {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
		n := 0
		for _, m := range f.Metrics {
			if !part.of(m) {
				continue
			}
			if n++; n == 1 {
				fmt.Fprintln(w, part.head)
			}
			fmt.Fprintf(w, "%s%s\t%s\t\n", m.What, m.load(), part.row(m)+m.Target()+"\t"+m.Verdict)
		}
		if n == 0 {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}

// WriteConditions prints the bottleneck, the lateness of the load generator and the noise of the machine.
func (f *File) WriteConditions(out io.Writer) error {
	if f.Limit != "" {
		fmt.Fprintln(out, "limit:", f.Limit)
	}
	if g := f.Generator; g != nil {
		fmt.Fprintf(out, "load generator: %s late by %s ms (p50), %s (p99), %s (max); limit %s (p99)\n", g.Of,
			Number(g.Late.P50.Value), Number(g.Late.P99.Value), Number(g.Late.Max.Value), Number(g.Bound))
	}
	b, d := f.Noise.Before, f.Noise.During
	_, err := fmt.Fprintf(
		out,
		"machine: sleep of 1 ms late by %s ms (p99) before the run, %s during; fixed CPU task %s ms (p50), %s (p99) before, %s and %s during\n",
		Number(b.Sleep.P99.Value),
		Number(d.Sleep.P99.Value),
		Number(b.Spin.P50.Value),
		Number(b.Spin.P99.Value),
		Number(d.Spin.P50.Value),
		Number(d.Spin.P99.Value),
	)
	for _, why := range f.Refused {
		fmt.Fprintln(out, "REFUSED:", why)
	}
	return err
}

func (m Metric) load() string {
	if m.Calls == 0 {
		return ""
	}
	return fmt.Sprintf(", %d calls", m.Calls)
}

func (m Metric) spread() string {
	if m.Spread.N == 0 {
		return "0\t–\t–\t–\t\t–\t–\t"
	}
	s := m.Spread
	return fmt.Sprintf("%d\t%s\t%s\t%s\t(%s–%s)\t%s\t%s\t", s.N, Number(s.P50.Value), Number(s.P90.Value), m.Amount(s.P95.Value),
		Number(s.P95.Low), Number(s.P95.High), Number(s.P99.Value), Number(s.Max.Value))
}

func (m Metric) share() string {
	if m.Count.N == 0 {
		return "0\t–\t–\t\t"
	}
	e, _ := m.At("share") // a count always has it
	return fmt.Sprintf("%d\t%d\t%s\t(%s–%s)\t", m.Count.N, m.Count.Times, m.Amount(e.Value), Number(e.Low), Number(e.High))
}

func (m Metric) figure() string {
	e := m.Figure
	if e.Low == e.High {
		return m.Amount(e.Value) + "\t\t"
	}
	return fmt.Sprintf("%s\t(%s–%s)\t", m.Amount(e.Value), Number(e.Low), Number(e.High))
}

// Amount formats a figure with its unit.
func (m Metric) Amount(v float64) string {
	if m.Unit == "" {
		return Number(v)
	}
	return Number(v) + " " + m.Unit
}

// Number formats v with its significant digits.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsInf(v, 0):
		return "?"
	case a >= 100 || a == math.Trunc(a):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}
