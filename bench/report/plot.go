package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/result"
)

// A plot is a line chart. Positions are in units of the SVG view.
type plot struct {
	Title, Note string
	Lines       []line
	Xs, Ys      []label
	Bound       *float64 // x position of the limit; nil without a target
}

type line struct {
	Name  string
	Path  string
	Dots  []dot
	Class int
}

// A dot is a point with a tooltip.
type dot struct {
	X, Y float64
	Says string
}

// A label is a text at a position of an axis.
type label struct {
	At   float64
	Text string
}

// Positions of the axes and of the opposite edges of the chart.
const (
	left, right = 44.0, 412.0
	high, low   = 12.0, 172.0
)

// few is the smallest number of values for which a distribution is drawn.
const few = 5

// distributions returns a chart for each metric with many values: their cumulative distribution,
// and the limit of the target.
func distributions(f *result.File) []plot {
	var all []plot
	for _, m := range f.Metrics {
		if m.Spread == nil || m.Histogram == nil || m.Histogram.N() < few || m.Calls > 0 || strings.Contains(m.Name, "/") {
			continue
		}
		top := m.Histogram.Quantile(1)
		for _, b := range m.Bounds {
			top = max(top, b.Limit)
		}
		x, ticks := scale(top, left, right)
		p := plot{Title: m.What, Note: m.Short(), Xs: ticks, Ys: shares()}
		if n := len(m.Bounds); n > 0 {
			at := x(m.Bounds[n-1].Limit)
			p.Bound = &at
		}
		var path strings.Builder
		fmt.Fprintf(&path, "M%.1f %.1f", left, low)
		before := low
		for _, s := range m.Histogram.Steps() {
			y := low - s.Share*(low-high)
			fmt.Fprintf(&path, "L%.1f %.1fL%.1f %.1f", x(s.Value), before, x(s.Value), y)
			before = y
		}
		p.Lines = []line{{Path: path.String()}}
		all = append(all, p)
	}
	return all
}

func shares() []label {
	return []label{{low, "0"}, {(low + high) / 2, "50%"}, {high, "100%"}}
}

// A course selects a figure of a metric that is plotted over the number of calls.
type course struct{ name, at, legend string }

// curves returns the charts over the number of calls.
func curves(f *result.File) []plot {
	var all []plot
	for _, p := range []struct {
		title   string
		courses []course
	}{
		{"overhead mouth to ear, ms", []course{
			{"ear_overhead_ms", "p50", "p50"},
			{"ear_overhead_ms", "p95", "p95"},
			{"ear_overhead_ms", "p99", "p99"},
		}},
		{"late and lost packets, %", []course{{"packets_late", "share", "late"}, {"packets_missing", "share", "missing"}}},
		{"CPU of the machine, %", []course{
			{"cpu_server", "value", "server"},
			{"cpu_postgres", "value", "Postgres"},
			{"cpu_fakes", "value", "fakes"},
			{"cpu_callees", "value", "callees"},
			{"cpu_all", "value", "all"},
		}},
		{"server: CPU per call and second, ms", []course{
			{"cpu_ms", "value", "server"},
			{"legs_cpu_ms", "value", "legs"},
			{"floor_cpu_ms", "value", "bare sockets"},
		}},
		{"server: memory per call, KiB", []course{{"rss_kib", "value", "server"}, {"legs_rss_kib", "value", "legs"}}},
		{"server's packets: gap, p99, ms", []course{
			{"jitter_ms", "p99", "deviation"},
			{"legs_gap_p999_ms", "value", "legs, p99.9"},
			{"floor_gap_p999_ms", "value", "bare sockets, p99.9"},
		}},
	} {
		if c, ok := curve(f, p.title, p.courses); ok {
			all = append(all, c)
		}
	}
	return all
}

// curve plots courses over the number of calls. It returns false if there are fewer than two numbers of calls.
func curve(f *result.File, title string, courses []course) (plot, bool) {
	type point struct{ calls, value float64 }
	points := make([][]point, len(courses))
	calls, top := 0.0, 0.0
	var loads []int
	for i, c := range courses {
		for _, m := range f.Metrics {
			e, ok := m.At(c.at)
			if !ok || m.Name != c.name || m.Calls == 0 {
				continue
			}
			points[i] = append(points[i], point{float64(m.Calls), e.Value})
			calls, top = max(calls, float64(m.Calls)), max(top, e.Value)
			loads = append(loads, m.Calls)
		}
	}
	slices.Sort(loads)
	if loads = slices.Compact(loads); len(loads) < 2 {
		return plot{}, false
	}
	x, ticks := scale(calls, left, right)
	y, marks := scale(top, low, high)
	p := plot{Title: title, Note: "by concurrent calls", Xs: ticks, Ys: marks}
	for i, c := range courses {
		if len(points[i]) == 0 {
			continue
		}
		l := line{Name: c.legend, Class: i}
		for n, q := range points[i] {
			l.Path += fmt.Sprintf("%c%.1f %.1f", "ML"[min(1, n)], x(q.calls), y(q.value))
			l.Dots = append(
				l.Dots,
				dot{x(q.calls), y(q.value), fmt.Sprintf("%s, %s calls: %s", c.legend, result.Number(q.calls), result.Number(q.value))},
			)
		}
		p.Lines = append(p.Lines, l)
	}
	return p, true
}

// scale returns a function that maps 0 to top onto an axis from begin to end, and round labels for the axis.
func scale(top, begin, end float64) (at func(float64) float64, labels []label) {
	step := nice(top / 4)
	last := max(step, step*math.Ceil(top/step-1e-9))
	at = func(v float64) float64 { return begin + (end-begin)*v/last }
	for v := 0.0; v <= last+step/2; v += step {
		labels = append(labels, label{at(v), result.Number(v)})
	}
	return at, labels
}

// nice rounds v up to a round number.
func nice(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}
