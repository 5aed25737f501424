package pipetest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline/turn"
)

// TestTenThousandTurns lets random callers talk with agents whose providers fail, and judges
// each call. PARLEYTEST_SOAK makes it ten thousand turns; otherwise there are fewer.
// PARLEYTEST_SEEDS selects seeds as FROM-TO. PARLEYTEST_RECORDINGS is a folder for the turn
// logs of calls with faults.
func TestTenThousandTurns(t *testing.T) {
	from, to := uint64(0), uint64(120)
	if os.Getenv("PARLEYTEST_SOAK") != "" {
		to = 800
	}
	if s := os.Getenv("PARLEYTEST_SEEDS"); s != "" {
		low, high, _ := strings.Cut(s, "-")
		from, _ = strconv.ParseUint(low, 10, 64)
		to, _ = strconv.ParseUint(high, 10, 64)
	}
	var turns, said, questions atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d calls, %d utterances, %d turns, %d questions", to-from, said.Load(), turns.Load(), questions.Load())
	})
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, log := simulate(t, seed)
				turns.Add(int64(len(r.outcome.Turns)))
				said.Add(int64(len(r.said)))
				questions.Add(int64(len(r.asked)))
				found := judged(r)
				for _, f := range found {
					t.Errorf("call %d: %s: %s", seed, f.what, f.why)
				}
				if dir := os.Getenv("PARLEYTEST_RECORDINGS"); dir != "" && len(found) > 0 {
					keep(t, filepath.Join(dir, fmt.Sprint(seed)), r, log, found)
				}
			})
		})
	}
}

// keep writes the events of a call in the order of time, and its turn log.
func keep(t *testing.T, name string, r recording, log string, found []finding) {
	t.Helper()
	var all []moment
	add := func(at time.Duration, format string, args ...any) {
		all = append(all, moment{at, fmt.Sprintf(format, args...)})
	}
	for _, u := range r.said {
		add(u.span.from, "CALLER %s until %.2f", u.text(), u.span.to.Seconds())
	}
	for _, w := range (&judge{recording: r}).wordsHeard() {
		add(w.Start, "AGENT %s until %.2f", w.Text, w.End.Seconds())
	}
	for k, q := range r.asked {
		add(q.at, "question %d: %q", k, q.messages)
	}
	for _, l := range r.outcome.Lines {
		add(l.End, "line since %.2f, turn %d %s %q interrupted %v", l.Start.Seconds(), l.Turn, l.Role, l.Text, l.Interrupted)
	}
	for i, l := range strings.Split(strings.TrimSpace(log), "\n") {
		var e turn.Entry
		if i == 0 || json.Unmarshal([]byte(l), &e) != nil {
			continue
		}
		var did []string
		for _, a := range e.Actions {
			did = append(did, fmt.Sprintf("%s(%s %s %v)", a.Do, a.Reason, a.Text, a.At))
		}
		add(e.Event.At, "    %s %q final %v from %v: %s", e.Event.Kind, e.Event.Text, e.Event.Final, e.Event.From, strings.Join(did, " "))
	}
	slices.SortStableFunc(all, func(a, b moment) int { return int(a.at - b.at) })
	var text strings.Builder
	for _, f := range found {
		fmt.Fprintf(&text, "%s: %s\n", f.what, f.why)
	}
	for _, m := range all {
		fmt.Fprintf(&text, "%8.3f %s\n", m.at.Seconds(), m.what)
	}
	for _, x := range r.outcome.Turns {
		fmt.Fprintf(&text, "turn %d %s %s %v\n", x.Number, x.Ending, x.Reason, x.Spans)
	}
	for ext, s := range map[string]string{".txt": text.String(), ".jsonl": log} {
		if err := os.WriteFile(name+ext, []byte(s), 0o600); err != nil {
			t.Error(err)
		}
	}
}

type moment struct {
	at   time.Duration
	what string
}
