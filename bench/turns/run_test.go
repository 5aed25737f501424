package turns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestMain runs the tests. In a child process it runs the gateway or the fake providers instead.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv("PARLEYTEST_CHILD") {
	case "gateway":
		err = gateway.Run(context.Background(), os.Stdin, os.Stdout)
	case "fakes":
		err = gateway.Fakes(context.Background(), os.Stdin, os.Stdout)
	default:
		m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func options(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Calls: 2, Pauses: 1, Others: 1, Seed: corpus.Development, Child: func(ctx context.Context, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, self)
		c.Env = append(os.Environ(), "PARLEYTEST_CHILD="+args[len(args)-1])
		return c
	}}
}

// TestTwoCalls checks a run over real sockets in which two callees hang up during an answer.
func TestTwoCalls(t *testing.T) {
	o := options(t)
	o.Only, o.Others = []scenario.Name{scenario.Hangup}, 4
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Turns) != 4 {
		t.Fatalf("got %d turns: %+v", len(r.Turns), r.Turns)
	}
	for _, v := range r.Turns {
		if v.Into == nil && (v.Dead || v.Wire == nil || v.Answer.Heard == 0) {
			t.Errorf("got no answer: %s", show(v))
		}
		if v.Into != nil && !v.Into.Hit {
			t.Errorf("hangup in silence: %s", show(v))
		}
	}
	dir := t.TempDir()
	if err = r.Record(dir, 1); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wav"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v", files, err)
	}
	left, right, _, err := recorder.Read(files[0])
	if err != nil || len(left) < rate || len(left) != len(right) {
		t.Errorf("got %d and %d samples, %v", len(left), len(right), err)
	}
	rows, err := r.rows()
	if err != nil || len(rows) != len(r.Turns) || !slices.ContainsFunc(rows, func(t result.Turn) bool { return len(t.Sound) > 0 }) {
		t.Errorf("got %d rows of %d turns, none with audio: %v", len(rows), len(r.Turns), err)
	}
}

// TestWordsIdentifyLine checks that one word of an answer identifies the line that it answers.
func TestWordsIdentifyLine(t *testing.T) {
	moves := []scenario.Utterance{said(true, corpus.Part{Text: "how much is it"}), said(true, corpus.Part{Text: "that is too much"})}
	all := sources(moves)
	for text, want := range map[string]source{
		"How much is it?": {0, true}, "how much": {0, false}, "too much": {1, false}, "how much is it that is too much": {1, true},
	} {
		words := strings.Fields(providers.Reply([]fakeprovider.Message{{Role: "system", Content: providers.Prompt(3)}, {Role: "user", Content: "x"}, {Role: "user", Content: text}}))
		if len(words) != 3 || known(all, "", words[0]) != words[0] || words[0][providers.StemLen:] != "ca" || words[2][providers.StemLen:] != "cc" {
			t.Errorf("%q: got answer %q", text, words)
			continue
		}
		if s := all[words[1][:providers.StemLen]]; len(s) != 1 || s[0] != want {
			t.Errorf("%q: got %+v, want %+v", text, s, want)
		}
	}
	w := providers.ReplyWords("too much", 1, 3)
	for _, c := range []struct{ last, text, want string }{
		{"", "wait", ""},
		{"", "hello", ""},
		{"", w[0], w[0]},
		{w[2], w[0], w[0]},
		{w[0], w[1][:2] + w[1][1:], w[1]},
		{w[0], w[1][:2] + "~" + w[1][3:], w[1]},
		{"", w[1][:2] + "~" + w[1][3:], ""},
		{w[0], w[1][:4], ""},
		{w[0], "please", ""},
	} {
		if got := known(all, c.last, c.text); got != c.want {
			t.Errorf("after %q, %q: got %q, want %q", c.last, c.text, got, c.want)
		}
	}
}

func TestComplete(t *testing.T) {
	all := sources([]scenario.Utterance{said(true, corpus.Part{Text: "how much is it"})})
	w := providers.ReplyWords("how much is it", 1, 3)
	for _, c := range []struct{ last, start, want string }{
		{w[0], w[1][:2], w[1]}, {w[0], w[0][:5], w[1]}, {"", w[0][:5], w[0]}, {"", w[0][:3], ""}, {w[0], "zz", ""}, {w[0], "", ""},
	} {
		if got := complete(all, c.last, c.start); got != c.want {
			t.Errorf("after %q, start %q: got %q, want %q", c.last, c.start, got, c.want)
		}
	}
}

// TestPlantedFaults checks that the metrics detect each deliberate fault of the gateway.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	const (
		off     = "agreement_ms"
		own     = "overhead_ms"
		doubled = "doubled_words"
		stale   = "stale_answers"
	)
	var runs sync.WaitGroup // number of concurrent runs, because the audio runs in real time
	defer runs.Wait()
	for plant, c := range map[gateway.Plant]struct{ shows, not []string }{
		gateway.Late:    {[]string{off, own}, []string{doubled, stale}},
		gateway.Wrong:   {[]string{off}, []string{doubled, stale}},
		gateway.Doubled: {[]string{doubled}, nil},
		gateway.Stale:   {[]string{stale}, nil},
		gateway.Healthy: {nil, []string{doubled, stale}},
	} {
		o := options(t)
		o.Only, o.Plant, o.Calls = []scenario.Name{scenario.Plain}, plant, 1 // two turns
		o.Warm = plant == gateway.Healthy
		runs.Go(func() {
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Errorf("%s: %v", plant, err)
				return
			}
			if len(r.Turns) != 2 { // a warm-up is not counted
				t.Errorf("%s: got %d turns", plant, len(r.Turns))
			}
			missed := r.Missed()
			for _, what := range c.shows {
				if !slices.Contains(missed, what) {
					t.Errorf("%s: %q is missing in the missed targets %q", plant, what, missed)
				}
			}
			for _, what := range c.not {
				if slices.Contains(missed, what) {
					t.Errorf("%s: %q was missed, want it met", plant, what)
				}
			}
		})
	}
}
