package turns

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
)

// stalledMS is the lateness of the callees' clock, in ms, from which a run is repeated. A stalled
// machine damages words.
const stalledMS = 50

// TestPlay checks that scenarios meet their expectations, and that impossible expectations are
// reported as missed.
func TestPlay(t *testing.T) {
	t.Parallel()
	var plays sync.WaitGroup // number of concurrent runs, because the audio runs in real time
	defer plays.Wait()
	for name, text := range map[string]string{
		"keys by G.722 in packets of 40 ms": "like: keys\nexchanges: 1\ncodec: G722\nptime: 40ms\nexpect: [keys_lost.times<=0, keys_unanswered.times<=0]",
		"a transfer":                        "like: transfer\nexchanges: 1\nhear: [a colleague speaking]\nexpect: [heard_lines.share>=100, ended_transferred.share>=100]",
		"a machine on a bad line": "like: voicemail\nexchanges: 1\nhear: [please call us back]\nfrom_caller: {jitter: 10ms}\n" +
			"expect: [heard_lines.share>=100, ended_voicemail_dropped.share>=100, answered_by_voicemail.share>=100]",
		"a broken model": "like: hang-up\nexchanges: 1\nproviders: {faults: [{provider: llm, fault: refuse, times: 1}]}\nexpect: [dead_turns.times<=0, ended_agent_hangup.share>=100]",
	} {
		s, err := scenario.Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o := options(t)
		plays.Go(func() {
			var out bytes.Buffer
			var f result.File
			want := 0
			if strings.Contains(text, "ended_agent_hangup") {
				want = 1 // the callee hung up
			}
			missed, err := Play(t.Context(), &out, o, s, &f)
			for range 2 {
				if err == nil && (missed == want || f.Generator.Late.Max.Value < stalledMS) {
					break
				}
				out, f = bytes.Buffer{}, result.File{}
				missed, err = Play(t.Context(), &out, o, s, &f)
			}
			if err != nil || missed != want || strings.Count(out.String(), "✗") != want || len(f.Metrics) != len(s.Expect) || len(f.Turns) == 0 {
				t.Errorf("%s: got %d missed, %v, %+v:\n%s", name, missed, err, f.Generator, out.String())
			}
		})
	}
}

func TestUnknownMetric(t *testing.T) {
	r := &Report{}
	r.count("dead_turns", "", never, 0, 1)
	if _, _, err := r.expected("dead.times<=0"); err == nil || !strings.Contains(err.Error(), "accepted are dead_turns") {
		t.Error(err)
	}
	if _, _, err := r.expected("dead_turns.p95<=0"); err == nil || !strings.Contains(err.Error(), "accepted are share, times") {
		t.Error(err)
	}
}

func TestInOrder(t *testing.T) {
	words := strings.Fields("hello one moment please are you still there yes are you still there")
	for _, c := range []struct {
		lines []string
		want  int
	}{
		{[]string{"One moment, please.", "Are you still there?", "Are you still there?"}, 3},
		{[]string{"are you still there", "one moment please"}, 1},
		{[]string{"good bye now"}, 0},
		{nil, 0},
	} {
		if got := inOrder(words, c.lines); got != c.want {
			t.Errorf("%q: got %d, want %d", c.lines, got, c.want)
		}
	}
}
