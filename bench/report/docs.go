package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/bench/result"
)

// Markers around the table of targets.
const (
	begin = "<!-- targets: parley bench docs writes what is between these lines -->\n"
	end   = "<!-- end of targets -->\n"
)

// A target is one line of the table of targets. The bounds of the metric decide whether it is
// met, or bound if it is not nil.
type target struct {
	what          string
	command, name string
	calls         int
	wanted        string // target to show; "" shows the bounds of the metric
	bound         *result.Bound
}

// targets returns the targets in the order of the table.
func targets() []target {
	return []target{
		{
			"overhead mouth to ear: without providers and endpointing policy, with packetization, ms", "turns", "ear_overhead_ms", 0,
			"p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil,
		},
		{"overhead on the wire, ms", "turns", "overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"increase of the p95 overhead mouth to ear from 1 call to 500 calls, ms", "load", "overhead_above_ms", 500, "value ≤ 10", nil},
		{"concurrent calls carried, full pipeline", "load", "calls_held", 0, "value ≥ 500", nil},
		{"the same figure, target for media", "load", "calls_held", 0, "value ≥ 1000", new(result.Least("value", 1000))},
		{"`turn_ms` of callers who do not pause", "turns", "turn_ms", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{"`turn_ms` of turns before a caller's first cut-off", "turns", "turn_ms_hurried", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{"`turn_ms` of all callers", "turns", "turn_ms_all", 0, "p50 ≤ 450, p95 ≤ 700", nil},
		{"audible cut-offs, mid-clause pauses", "turns", "cut_offs_mid_clause", 0, "share ≤ 2%", nil},
		{"audible cut-offs, pauses after a complete clause", "turns", "cut_offs_complete_clause", 0, "", nil},
		{"mid-clause pauses: turn not taken as one message with one answer", "turns", "not_one_answer_mid_clause", 0, "share ≤ 2%", nil},
		{"barge-in: time to the agent's last sample, ms", "turns", "stop_ms", 0, "p50 ≤ 180, p95 ≤ 300", nil},
		{"barge-in: time until the voice is ducked, ms", "turns", "duck_ms", 0, "p95 ≤ 90", nil},
		{"answers lost to a cough", "turns", "cough_lost", 0, "share ≤ 3%", nil},
		{"answers lost to a backchannel", "turns", "backchannel_lost", 0, "share ≤ 3%", nil},
		{"answers lost to an echo at −20 dB", "turns", "echo_lost", 0, "share ≤ 3%", nil},
		{"resume after a false stop, ms", "turns", "resume_ms", 0, "max ≤ 700", nil},
		{"words of resumed answers that callers did not hear", "turns", "resume_words_lost", 0, "times ≤ 0", nil},
		{"wrong words in the transcript of an interrupted answer", "turns", "heard_off", 0, "p95 ≤ 1", nil},
		{"error of the reported `turn_ms`, compared with the audio on the wire, ms", "turns", "agreement_ms", 0, "max ≤ 25", nil},
		{"answered turns without `turn_ms`", "turns", "untold", 0, "times ≤ 0", nil},
		{"turns without an answer", "turns", "dead_turns", 0, "times ≤ 0", nil},
		{"turns with two answers", "turns", "double_answers", 0, "times ≤ 0", nil},
		{"stale answers", "turns", "stale_answers", 0, "times ≤ 0", nil},
		{"browser: overhead mouth to ear, ms", "turns --peer web", "ear_overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"browser: overhead on the wire, ms", "turns --peer web", "overhead_ms", 0, "p50 ≤ 25, p95 ≤ 35, p99 ≤ 50", nil},
		{"browser: `turn_ms` of callers who do not pause", "turns --peer web", "turn_ms", 0, "p50 ≤ 450, p95 ≤ 490", nil},
		{
			"browser: error of the reported `turn_ms`, compared with the audio on the wire, ms", "turns --peer web",
			"agreement_ms", 0, "max ≤ 25", nil,
		},
		{"browser: answered turns without `turn_ms`", "turns --peer web", "untold", 0, "times ≤ 0", nil},
		{"browser: turns without an answer", "turns --peer web", "dead_turns", 0, "times ≤ 0", nil},
		{"answer detection: end of a person's greeting → agent's first word, ms", "amd", "human_first_word_ms", 0, "p50 ≤ 700", nil},
		{"answer detection: time to classify a machine, ms", "amd", "machine_verdict_ms", 0, "p50 ≤ 2000, p95 ≤ 4000", nil},
		{"answer detection: end of the beep → first word of the message, ms", "amd", "after_beep_ms", 0, "p95 ≤ 120", nil},
		{"media: CPU per call and second, 200 calls, ms", "media", "legs_cpu_ms", 200, "value ≤ 0.8", nil},
		{"media: CPU as a multiple of bare sockets", "media", "legs_cpu_x_floor", 200, "value ≤ 3", nil},
		{"media: packets received, of those due, %", "media", "legs_packets", 200, "value ≥ 99.9", nil},
		{"media: gap between two packets of a stream, p99.9, ms", "media", "legs_gap_p999_ms", 200, "value ≤ 22", nil},
		{"media: memory per call, KiB", "media", "legs_rss_kib", 200, "value ≤ 256", nil},
		{"campaigns: calls placed, of those due at the set pace, %", "campaigns", "pace", 0, "value ≥ 99, value ≤ 101", nil},
		{"campaigns: calls in the busiest second", "campaigns", "busiest_second", 0, "value ≤ 6", nil},
		{"call requests at 500 a second, ms", "api", "orders_at_rate_ms", 0, "p99 ≤ 50", nil},
		{"call requests of 16 clients, per second", "api", "orders_per_second", 0, "value ≥ 500", nil},
		{"reads of one call, per second", "api", "reads_per_second", 0, "value ≥ 2000", nil},
		{"one page of a call list, ms", "api", "pages_ms", 0, "p99 ≤ 30", nil},
	}
}

// Fill replaces the table of targets between the markers of a page.
func Fill(page []byte, files []*result.File) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(begin))
	if !ok {
		return nil, errors.New("missing line " + strings.TrimSpace(begin))
	}
	_, after, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return nil, errors.New("missing line " + strings.TrimSpace(end))
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(table(files)), []byte(end), after}, nil), nil
}

// table returns the table with the result for each target.
func table(files []*result.File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(
			&b,
			"- `bench %s`: %s, commit %s, %d × %s, %s, %s.",
			f.Command,
			f.Began.Format("2006-01-02 15:04 UTC"),
			f.Commit,
			f.Machine.Cores,
			f.Machine.Model,
			f.Machine.OS,
			f.Machine.Go,
		)
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

// cell formats the figures of a metric that have bounds, with their intervals.
func cell(m result.Metric) string {
	at := []string{"p50", "p95", "p99"}
	switch {
	case m.N() == 0:
		return ""
	case m.Count != nil:
		share, interval, _ := strings.Cut(amount(m, "share"), " ")
		return strings.TrimSpace(fmt.Sprintf("%d of %d: %s%% %s", m.Count.Times, m.Count.N, share, interval))
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
