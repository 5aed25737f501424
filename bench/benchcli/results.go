package benchcli

import (
	"errors"
	"fmt"
	"os"

	"github.com/parley-voice/parley/bench/report"
	"github.com/parley-voice/parley/bench/result"
)

// Compare compares two results.
type Compare struct {
	Before    string  `arg:"" help:"Result of the first run." type:"existingfile" name:"a.json"`
	After     string  `arg:"" help:"Result of the second run." type:"existingfile" name:"b.json"`
	Tolerance float64 `help:"Share by which a figure may get worse." default:"0.05"`
}

// Run prints the differences and fails on a regression.
func (c Compare) Run(t *Terminal) error {
	files, err := read([]string{c.Before, c.After})
	if err != nil {
		return err
	}
	return result.WriteComparison(t.Out, files[0], files[1], c.Tolerance)
}

// Gate checks results against bounds.
type Gate struct {
	Files       []string `arg:"" help:"Results of runs." type:"existingfile" name:"file"`
	P50Overhead *float64 `name:"p50-overhead" help:"Maximum p50 of overhead_ms: response time beyond providers and policy." placeholder:"MS"`
	P95Overhead *float64 `name:"p95-overhead" help:"Maximum p95 of overhead_ms." placeholder:"MS"`
	P99Overhead *float64 `name:"p99-overhead" help:"Maximum p99 of overhead_ms." placeholder:"MS"`
	P95Turn     *float64 `name:"p95-turn" help:"Maximum p95 of turn_ms, for callers who do not pause." placeholder:"MS"`
	Agreement   *float64 `help:"Maximum difference of any turn_ms from the audio." placeholder:"MS"`
	CutOffs     *float64 `help:"Maximum share of mid-clause pauses that the agent interrupts." placeholder:"PERCENT"`
	Calls       *float64 `help:"Minimum of concurrent calls." placeholder:"N"`
	Bound       []string `help:"Another bound: NAME.FIGURE<=LIMIT or NAME@CALLS.FIGURE>=LIMIT, such as jitter_ms@50.p99<=5. Repeatable." placeholder:"BOUND" sep:"none"`
	Targets     bool     `help:"Require that every figure meets its own target."`
}

// Run prints one line per bound and fails if a bound is exceeded.
func (c Gate) Run(t *Terminal) error {
	files, err := read(c.Files)
	if err != nil {
		return err
	}
	var rules []result.Rule
	for _, r := range []struct {
		limit *float64
		name  string
		bound func(at string, limit float64) result.Bound
		at    string
	}{
		{c.P50Overhead, "overhead_ms", result.Most, "p50"},
		{c.P95Overhead, "overhead_ms", result.Most, "p95"},
		{c.P99Overhead, "overhead_ms", result.Most, "p99"},
		{c.P95Turn, "turn_ms", result.Most, "p95"},
		{c.Agreement, "agreement_ms", result.Most, "max"},
		{c.CutOffs, "cut_offs_mid_clause", result.Most, "share"},
		{c.Calls, "calls_held", result.Least, "value"},
	} {
		if r.limit != nil {
			rules = append(rules, result.Rule{Name: r.name, Bound: r.bound(r.at, *r.limit)})
		}
	}
	for _, text := range c.Bound {
		name, calls, b, err := result.ParseBound(text)
		if err != nil {
			return err
		}
		rules = append(rules, result.Rule{Name: name, Calls: calls, Bound: b})
	}
	return result.Gate(t.Out, files, rules, c.Targets)
}

// Report writes an HTML report.
type Report struct {
	Files []string `arg:"" help:"Results of runs." type:"existingfile" name:"file"`
	Out   string   `short:"o" help:"File for the report." default:"report.html" type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c Report) Run(t *Terminal) (err error) {
	files, err := read(c.Files)
	if err != nil {
		return err
	}
	f, err := os.Create(c.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err = report.Write(f, files); err != nil {
		return err
	}
	_, err = fmt.Fprintln(t.Out, c.Out)
	return err
}

// Docs updates the table of targets in a page of the documentation.
type Docs struct {
	Files []string `arg:"" type:"existingfile" name:"file"`
	Into  string   `required:"" type:"existingfile" placeholder:"FILE"`
}

// Run writes the table of targets between the page's markers.
func (c Docs) Run() error {
	files, err := read(c.Files)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(c.Into)
	if err != nil {
		return err
	}
	if page, err = report.Fill(page, files); err != nil {
		return fmt.Errorf("%s: %w", c.Into, err)
	}
	return os.WriteFile(c.Into, page, 0o644) //nolint:gosec // a page that everybody reads
}

func read(names []string) ([]*result.File, error) {
	var all []*result.File
	for _, name := range names {
		f, err := result.Read(name)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}
