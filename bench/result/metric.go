package result

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/bench/stat"
)

// Verdicts on a metric with a target.
const (
	Met     = "met"
	Missed  = "missed"
	Unknown = "unknown" // the metric was not measured
)

// A Metric is one measurement: a distribution, a share, or a single figure.
type Metric struct {
	Name  string `json:"name"`            // name in lower case, by which rules refer to the metric
	What  string `json:"what"`            // description of what is measured
	Unit  string `json:"unit,omitempty"`  // unit of the values
	Calls int    `json:"calls,omitempty"` // concurrent calls, if the metric was measured at several loads
	// More means that higher is better.
	More bool `json:"more_is_better,omitempty"`

	Spread    *stat.Summary   `json:"spread,omitempty"`
	Histogram *stat.Histogram `json:"hdr,omitempty"`
	Count     *Count          `json:"count,omitempty"`
	Figure    *stat.Estimate  `json:"figure,omitempty"`

	Bounds  []Bound `json:"target,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
}

// A Count is how often something happened, out of N cases in which it could happen.
type Count struct {
	Times int           `json:"times"`
	N     int           `json:"n"`
	Share stat.Estimate `json:"share"`
}

// Spread returns a metric of many values.
func Spread(name, what, unit string, values []float64, bounds ...Bound) Metric {
	s, h := stat.Summarize(values), stat.Collect(values)
	return Metric{Name: name, What: what, Unit: unit, Spread: &s, Histogram: &h, Bounds: bounds}
}

// Share returns a metric of how often an event happened: in times of n cases.
func Share(name, what string, times, n int, bounds ...Bound) Metric {
	return Metric{Name: name, What: what, Unit: "%", Count: &Count{times, n, stat.Share(times, n)}, Bounds: bounds}
}

// Figure returns a metric of one value with an interval.
func Figure(name, what, unit string, e stat.Estimate, bounds ...Bound) Metric {
	return Metric{Name: name, What: what, Unit: unit, Figure: &e, Bounds: bounds}
}

// Exactly returns an estimate of v without uncertainty.
func Exactly(v float64) stat.Estimate { return stat.Estimate{Value: v, Low: v, High: v} }

// Key returns the name; if the metric has a load, @ and the load follow.
func (m Metric) Key() string {
	if m.Calls == 0 {
		return m.Name
	}
	return m.Name + "@" + strconv.Itoa(m.Calls)
}

// N returns the number of samples.
func (m Metric) N() int {
	switch {
	case m.Spread != nil:
		return m.Spread.N
	case m.Count != nil:
		return m.Count.N
	case m.Figure != nil:
		return 1
	default:
		return 0
	}
}

// At returns a figure by name. A spread has p50, p90, p95, p99, max and mean; a count has share
// (in percent) and times; a figure has value. At returns false if the name is unknown or nothing
// was measured.
func (m Metric) At(at string) (stat.Estimate, bool) {
	switch {
	case m.N() == 0:
		return stat.Estimate{}, false
	case m.Spread != nil:
		return m.Spread.At(at)
	case m.Count != nil && at == "share":
		s := m.Count.Share
		return stat.Estimate{Value: 100 * s.Value, Low: 100 * s.Low, High: 100 * s.High}, true
	case m.Count != nil && at == "times":
		return Exactly(float64(m.Count.Times)), true
	case m.Figure != nil && at == "value":
		return *m.Figure, true
	default:
		return stat.Estimate{}, false
	}
}

// Figures returns the names that At accepts.
func (m Metric) Figures() []string {
	switch {
	case m.Spread != nil:
		return []string{"p50", "p90", "p95", "p99", "max", "mean"}
	case m.Count != nil:
		return []string{"share", "times"}
	default:
		return []string{"value"}
	}
}

// A Bound limits a figure of a metric from above, or from below.
type Bound struct {
	At    string  `json:"at"`
	Least bool    `json:"least,omitempty"` // true: Limit is the minimum; false: the maximum
	Limit float64 `json:"limit"`
}

// Most returns an upper bound.
func Most(at string, limit float64) Bound { return Bound{At: at, Limit: limit} }

// Least returns a lower bound.
func Least(at string, limit float64) Bound { return Bound{At: at, Least: true, Limit: limit} }

// String returns the bound in the form "p95 ≤ 35".
func (b Bound) String() string {
	sign := "≤"
	if b.Least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %s %s", b.At, sign, strconv.FormatFloat(b.Limit, 'f', -1, 64))
}

// Holds reports whether the metric meets the bound. known is false if the figure was not measured.
func (b Bound) Holds(m Metric) (holds, known bool) {
	e, ok := m.At(b.At)
	if !ok {
		return false, false
	}
	if b.Least {
		return e.Value >= b.Limit, true
	}
	return e.Value <= b.Limit, true
}

// Judge returns Met, Missed or Unknown, or "" for a metric without a target.
func (m Metric) Judge() string {
	if len(m.Bounds) == 0 {
		return ""
	}
	for _, b := range m.Bounds {
		switch holds, known := b.Holds(m); {
		case !known:
			return Unknown
		case !holds:
			return Missed
		}
	}
	return Met
}

// Target describes the bounds, for display.
func (m Metric) Target() string {
	var all []string
	for _, b := range m.Bounds {
		text := b.String()
		if b.At == "share" {
			text += " %"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// ParseBound parses a bound such as "name.p95<=35", or "name@50.p95>=1" for a load of 50 calls.
func ParseBound(text string) (name string, calls int, b Bound, err error) {
	wrong := func() (string, int, Bound, error) {
		return "", 0, b, fmt.Errorf("bound %q: want NAME.FIGURE<=LIMIT or NAME@CALLS.FIGURE>=LIMIT, such as turn_ms.p95<=490", text)
	}
	left, right, ok := strings.Cut(text, "<=")
	if !ok {
		if left, right, ok = strings.Cut(text, ">="); !ok {
			return wrong()
		}
		b.Least = true
	}
	if b.Limit, err = strconv.ParseFloat(strings.TrimSpace(right), 64); err != nil || b.Limit != b.Limit {
		return wrong()
	}
	name, b.At, ok = strings.Cut(strings.TrimSpace(left), ".")
	if !ok || name == "" || b.At == "" {
		return wrong()
	}
	name, load, at := strings.Cut(name, "@")
	if at {
		if calls, err = strconv.Atoi(load); err != nil || calls < 1 {
			return wrong()
		}
	}
	return name, calls, b, nil
}
