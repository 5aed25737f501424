package conversation_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

const goodbye = "you will not be called again goodbye"

// kept holds the opt-outs that a call stored, and when.
type kept struct {
	mu   sync.Mutex
	all  []pipeline.OptOut
	at   []time.Time
	slow time.Duration // duration of a write
	err  error
}

func (k *kept) keep(ctx context.Context, o pipeline.OptOut) error {
	<-time.After(k.slow)
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.all, k.at = append(k.all, o), append(k.at, time.Now())
	return k.err
}

func (k *kept) sources() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, o := range k.all {
		all = append(all, string(o.Source))
	}
	return strings.Join(all, " ")
}

// TestOptOut checks that an opt-out by words, key or tool is stored at once, is confirmed once
// and ends the call.
func TestOptOut(t *testing.T) {
	for name, c := range map[string]struct {
		brief  pipeline.SessionConfig
		caller []any // words, waits and pressed keys (as runes) of the caller
		heard  string
		kept   string
		line   string // expected line of the transcript
	}{
		"words": {
			pipeline.SessionConfig{Greeting: hello},
			[]any{4 * time.Second, "please stop calling me", 1500 * time.Millisecond, "are you still there", 10 * time.Second},
			hello + " " + goodbye, "speech", "caller: please stop calling me",
		},
		"words in the disclosure": {
			pipeline.SessionConfig{Disclosure: disclosed, Greeting: hello},
			[]any{time.Second, "take me off your list", 12 * time.Second},
			"", "speech", "caller: take me off your list",
		},
		"the key in the disclosure": {
			pipeline.SessionConfig{Disclosure: disclosed, Greeting: hello},
			[]any{2 * time.Second, '9', 10 * time.Second},
			"", "key", "caller: [pressed 9]",
		},
		"the key later": {
			pipeline.SessionConfig{Greeting: hello},
			[]any{4 * time.Second, '9', 10 * time.Second},
			hello + " " + goodbye, "key", "caller: [pressed 9]",
		},
		"a phrase of its own": {
			pipeline.SessionConfig{Greeting: hello},
			[]any{4 * time.Second, "enough of this", 10 * time.Second},
			hello + " " + goodbye, "speech", "caller: enough of this",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			c.brief.OptOuts = pipeline.OptOutConfig{Key: "9", Phrases: []string{"Enough of this!"}, Store: k.keep}
			x := start(t, fakeprovider.Typical(), c.brief)
			x.act(c.caller...)
			o := x.wait()
			if got := x.plainly(); o.Reason != pipeline.AgentHungUp || !strings.HasSuffix(got, goodbye) || c.heard != "" && got != c.heard {
				t.Errorf("%s: %s, the caller heard %q", name, o.Reason, got)
			}
			if strings.Count(x.plainly(), goodbye) != 1 || c.brief.Disclosure != "" && strings.Contains(x.plainly(), hello) {
				t.Errorf("%s: the caller heard %q", name, x.plainly())
			}
			if got := k.sources(); got != c.kept || !strings.Contains(strings.Join(lines(o), "\n"), c.line) {
				t.Errorf("%s: stored %q, lines %q", name, got, lines(o))
			}
			if over := time.Since(x.began); k.at[0].Sub(x.began) > over-1500*time.Millisecond {
				t.Errorf("%s: stored after %v, the call lasted %v", name, k.at[0].Sub(x.began), over)
			}
		})
	}
}

// plainly returns what the caller heard, without punctuation.
func (c *call) plainly() string { return strings.ReplaceAll(c.words(), ".", "") }

func (c *call) act(what ...any) {
	for _, w := range what {
		select {
		case <-c.done:
			return
		default:
		}
		switch w := w.(type) {
		case time.Duration:
			select {
			case <-c.done:
			case <-time.After(w):
			}
		case rune:
			c.Press(w)
		case string:
			c.say(w)
		}
	}
}

// TestNoOptOut checks that a number that contains the opt-out key, other keys and other words do not opt out. Without
// a store, nothing opts out.
func TestNoOptOut(t *testing.T) {
	for name, c := range map[string]struct {
		keep   bool
		caller []any
	}{
		"a number":    {true, []any{4 * time.Second, '1', 300 * time.Millisecond, '9', 300 * time.Millisecond, '9', 4 * time.Second}},
		"another key": {true, []any{4 * time.Second, '1', 4 * time.Second}},
		"other words": {true, []any{4 * time.Second, "do not call it quits", 4 * time.Second}},
		"no store":    {false, []any{4 * time.Second, "stop calling me", 4 * time.Second, '9', 4 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			b := pipeline.SessionConfig{Greeting: hello, OptOuts: pipeline.OptOutConfig{Key: "9"}}
			if c.keep {
				b.OptOuts.Store = k.keep
			}
			x := start(t, fakeprovider.Typical(), b)
			x.act(c.caller...)
			if o := x.hangup(); o.Reason != pipeline.CallerHungUp || k.sources() != "" {
				t.Errorf("%s: %s, stored %q", name, o.Reason, k.sources())
			}
		})
	}
}

// TestOptOutBeforeHangup checks that an opt-out just before the hangup is stored before Talk
// returns.
func TestOptOutBeforeHangup(t *testing.T) {
	for _, last := range []any{'9', "do not call me again"} {
		synctest.Test(t, func(t *testing.T) {
			k := kept{slow: 20 * time.Second}
			x := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: hello, OptOuts: pipeline.OptOutConfig{Key: "9", Store: k.keep}})
			x.act(4*time.Second, last, 20*time.Millisecond)
			if o := x.hangup(); o.Reason != pipeline.CallerHungUp || len(k.all) != 1 {
				t.Errorf("%v: %s, stored %q", last, o.Reason, k.sources())
			}
		})
	}
}

// TestOptOutTool checks that the caller hears the goodbye after the model calls the opt-out tool, and that the call
// ends even if the store fails.
func TestOptOutTool(t *testing.T) {
	for _, err := range []error{nil, errors.New("the database is away")} {
		synctest.Test(t, func(t *testing.T) {
			k := kept{err: err}
			s := calls("opt_out", "{}", "")
			x := start(t, s, pipeline.SessionConfig{Greeting: hello, OptOuts: pipeline.OptOutConfig{Store: k.keep}})
			x.act(4*time.Second, "i would rather not be bothered", 300*time.Millisecond, "hello hello", 20*time.Second)
			o := x.wait()
			if o.Reason != pipeline.AgentHungUp || k.sources() == "" || err == nil && !strings.HasSuffix(x.plainly(), goodbye) {
				t.Errorf("%v: %s, stored %q, the caller heard %q, lines %q", err, o.Reason, k.sources(), x.plainly(), lines(o))
			}
		})
	}
}

// TestOptOutWithoutVoice checks that the call ends without a goodbye if the voice fails.
func TestOptOutWithoutVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k kept
		s := fakeprovider.Typical()
		s.Fault = func(p fakeprovider.Provider, n int) fakeprovider.Fault {
			if p == fakeprovider.TTS && n > 4 {
				return fakeprovider.Hang
			}
			return fakeprovider.None
		}
		x := start(t, s, pipeline.SessionConfig{Greeting: hello, OptOuts: pipeline.OptOutConfig{Key: "9", Store: k.keep}})
		x.act(6*time.Second, '9', 20*time.Second)
		if o := x.wait(); o.Reason != pipeline.AgentHungUp || k.sources() != "key" {
			t.Errorf("%s after %v, stored %q", o.Reason, time.Since(x.began), k.sources())
		}
	})
}
