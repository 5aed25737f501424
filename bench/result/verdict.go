package result

import (
	"fmt"
	"io"
)

// VerdictLines is the most lines that WriteVerdict prints.
const VerdictLines = 6

// WriteVerdict prints the outcome of a run in at most VerdictLines lines: how many targets were
// met, why the run is invalid, the bottleneck, and the missed targets. Other figures fill the
// remaining lines, first those with targets.
func (f *File) WriteVerdict(out io.Writer) error {
	counts := map[string]int{}
	var missed, met, others []string
	for _, m := range f.Metrics {
		counts[m.Verdict]++
		line := fmt.Sprintf("%s%s: %s", m.What, m.load(), m.Short())
		switch {
		case m.Verdict == Missed:
			missed = append(missed, fmt.Sprintf("missed: %s (target %s)", line, m.Target()))
		case m.Verdict == Met:
			met = append(met, "  "+line)
		case m.N() > 0:
			others = append(others, "  "+line)
		}
	}
	lines := []string{fmt.Sprintf("bench %s: no targets apply", f.Command)}
	if n := counts[Met] + counts[Missed] + counts[Unknown]; n > 0 {
		lines[0] = fmt.Sprintf("bench %s: %d of %d targets met, %d missed, %d not measured",
			f.Command, counts[Met], n, counts[Missed], counts[Unknown])
	}
	for _, why := range f.Refused {
		lines = append(lines, "refused: "+why)
	}
	if f.Limit != "" {
		lines = append(lines, "limit: "+f.Limit)
	}
	lines = append(lines, missed...)
	if n := len(lines); n > VerdictLines {
		lines = append(lines[:VerdictLines-1], fmt.Sprintf("%d more: use --verbose", n-VerdictLines+1))
	}
	others = append(met, others...)
	lines = append(lines, others[:min(len(others), VerdictLines-len(lines))]...)
	for _, l := range lines {
		if _, err := fmt.Fprintln(out, l); err != nil {
			return err
		}
	}
	return nil
}
