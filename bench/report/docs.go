package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/bench/result"
)

// Markers, between which a page holds the table of targets.
const (
	begin = "<!-- targets: parley bench docs writes what is between these lines -->\n"
	end   = "<!-- end of targets -->\n"
)

// A target is one that was set before it was measured, and the metric that tells
// whether it is met: by its own bounds, or by another.
type target struct {
	what          string
	command, name string
	calls         int
	wanted        string // where there is no metric to ask
	bound         *result.Bound
}

// targets are those of the design, in its order.
func targets() []target {
	return []target{
		{"overhead on an answer at the ear, packets being filled included: neither script nor policy asked for it, ms", "turns", "ear_overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"the same on the wire, ms", "turns", "overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"its p95 at the ear with 500 calls at a time, above that of one, ms", "load", "overhead_above_ms", 500, "value ≤ 10", nil},
		{"calls held at a time, the whole pipeline on each", "load", "calls_held", 0, "value ≥ 500", nil},
		{"the same, as set for media", "load", "calls_held", 0, "value ≥ 1000", new(result.Least("value", 1000))},
		{"`turn_ms` of callers who do not pause", "turns", "turn_ms", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{"`turn_ms` of all who had not been cut off three times", "turns", "turn_ms_hurried", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{"`turn_ms` of all", "turns", "turn_ms_all", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{"audible cut-offs, pauses inside a clause", "turns", "cut_offs_mid_clause", 0, "share ≤ 2 %", nil},
		{"audible cut-offs, pauses after a complete clause: told apart", "turns", "cut_offs_complete_clause", 0, "", nil},
		{"pauses inside a clause: not one message and one answer", "turns", "not_one_answer_mid_clause", 0, "share ≤ 2 %", nil},
		{"barge-in: the agent's last sample, ms", "turns", "stop_ms", 0, "p50 ≤ 180, p95 ≤ 300", nil},
		{"barge-in: its voice is lowered, ms", "turns", "duck_ms", 0, "p95 ≤ 90", nil},
		{"answers lost to a cough", "turns", "cough_lost", 0, "share ≤ 3 %", nil},
		{"answers lost to a listener's word", "turns", "backchannel_lost", 0, "share ≤ 3 %", nil},
		{"answers lost to an echo at −20 dB", "turns", "echo_lost", 0, "share ≤ 3 %", nil},
		{"resumed after a false stop, ms", "turns", "resume_ms", 0, "max ≤ 700", nil},
		{"words of those answers not heard", "turns", "resume_words_lost", 0, "times ≤ 0", nil},
		{"words that the server is wrong about in a cut answer", "turns", "heard_off", 0, "p95 ≤ 1", nil},
		{"`turn_ms` against what was heard, ms", "turns", "agreement_ms", 0, "max ≤ 25", nil},
		{"answered turns without `turn_ms`", "turns", "untold", 0, "times ≤ 0", nil},
		{"turns without an answer", "turns", "dead_turns", 0, "times ≤ 0", nil},
		{"answers said twice", "turns", "double_answers", 0, "times ≤ 0", nil},
		{"stale answers", "turns", "stale_answers", 0, "times ≤ 0", nil},
		{"browser: overhead on an answer at the ear, ms", "turns --peer web", "ear_overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"browser: the same on the wire, ms", "turns --peer web", "overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"browser: `turn_ms` of callers who do not pause", "turns --peer web", "turn_ms", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{"browser: `turn_ms` against what was heard, ms", "turns --peer web", "agreement_ms", 0, "max ≤ 25", nil},
		{"browser: answered turns without `turn_ms`", "turns --peer web", "untold", 0, "times ≤ 0", nil},
		{"browser: turns without an answer", "turns --peer web", "dead_turns", 0, "times ≤ 0", nil},
		{"who answered: a person is spoken to, ms after the greeting", "amd", "human_first_word_ms", 0, "p50 ≤ 700", nil},
		{"who answered: the verdict on a machine, ms", "amd", "machine_verdict_ms", 0, "p50 ≤ 2500, p95 ≤ 5000", nil},
		{"who answered: the message begins, ms after the beep", "amd", "after_beep_ms", 0, "p95 ≤ 120", nil},
		{"media: CPU of a call and second, 200 calls, ms", "media", "legs_cpu_ms", 200, "value ≤ 0.8", nil},
		{"media: the same, as a multiple of bare sockets", "media", "legs_cpu_x_floor", 200, "value ≤ 3", nil},
		{"media: packets that came, of those due, %", "media", "legs_packets", 200, "value ≥ 99.9", nil},
		{"media: between two packets of a stream, p99.9, ms", "media", "legs_gap_p999_ms", 200, "value ≤ 22", nil},
		{"media: memory of a call, KiB", "media", "legs_rss_kib", 200, "value ≤ 256", nil},
		{"campaigns: calls, of those that the pace asks for, %", "campaigns", "pace", 0, "value ≥ 99, value ≤ 101", nil},
		{"campaigns: calls in the busiest second", "campaigns", "busiest_second", 0, "value ≤ 6", nil},
		{"orders at 500 a second, ms", "api", "orders_at_rate_ms", 0, "p99 ≤ 50", nil},
		{"orders that 16 clients get through, a second", "api", "orders_per_second", 0, "value ≥ 500", nil},
		{"one call read, a second", "api", "reads_per_second", 0, "value ≥ 2000", nil},
		{"a page of a list of calls, ms", "api", "pages_ms", 0, "p99 ≤ 30", nil},
	}
}

// Fill puts the table of targets, as the files have them, between the markers of
// a page.
func Fill(page []byte, files []*result.File) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(begin))
	if !ok {
		return nil, errors.New("it has no line " + strings.TrimSpace(begin))
	}
	_, after, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return nil, errors.New("it has no line " + strings.TrimSpace(end))
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(table(files)), []byte(end), after}, nil), nil
}

// table is what the files say of each target.
func table(files []*result.File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "- `bench %s`: %s, commit %s, %d × %s, %s, %s.", f.Command, f.Began.Format("2006-01-02 15:04 UTC"), f.Commit, f.Machine.Cores, f.Machine.Model, f.Machine.OS, f.Machine.Go)
		if f.Limit != "" {
			fmt.Fprintf(&b, " Limit: %s.", f.Limit)
		}
		for _, why := range f.Refused {
			fmt.Fprintf(&b, " **Refused**: %s.", why)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| | target | measured | n | |\n|---|---|---|---|---|\n")
	for _, t := range targets() {
		figure, n, verdict, wanted := "", 0, "not measured", t.wanted
		for _, f := range files {
			m, ok := f.Find(t.name, t.calls)
			if f.Command != t.command || !ok {
				continue
			}
			if wanted == "" {
				wanted = m.Target()
			}
			if t.bound != nil {
				m.Bounds = []result.Bound{*t.bound}
			}
			figure, n, verdict = cell(m), m.N(), passed(f, m)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s |\n", t.what, wanted, figure, n, verdict)
	}
	return b.String()
}

// cell is a figure with the intervals of what is bounded.
func cell(m result.Metric) string {
	at := []string{"p50", "p95", "p99"}
	switch {
	case m.N() == 0:
		return ""
	case m.Count != nil:
		return fmt.Sprintf("%d of %d: %s %%", m.Count.Times, m.Count.N, amount(m, "share"))
	case m.Figure != nil:
		return amount(m, "value")
	case len(m.Bounds) > 0:
		at = nil
		for _, b := range m.Bounds {
			at = append(at, b.At)
		}
	}
	var parts []string
	for _, name := range at {
		parts = append(parts, name+" "+amount(m, name))
	}
	return strings.Join(parts, ", ")
}

func passed(f *result.File, m result.Metric) string {
	switch {
	case f.Err() != nil:
		return "refused"
	case m.Judge() == result.Met:
		return "pass"
	case m.Judge() == result.Missed:
		return "**fail**"
	case m.Judge() == result.Unknown:
		return "not measured"
	default:
		return ""
	}
}
