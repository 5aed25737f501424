package converse_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

const goodbye = "you will not be called again goodbye"

// kept are the opt-outs of a call that were kept, and when.
type kept struct {
	mu   sync.Mutex
	all  []pipeline.OptOut
	at   []time.Time
	slow time.Duration // a write takes
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

// TestOptOut: who asks not to be called again, by words, by the key or so that the
// model notices, is told that once, whatever it says meanwhile, and the call ends;
// it is kept at the moment, not at the end.
func TestOptOut(t *testing.T) {
	for name, c := range map[string]struct {
		brief  pipeline.Brief
		caller []any // what it says, waits for, and presses (a rune)
		heard  string
		kept   string
		line   string // of the transcript
	}{
		"words": {
			pipeline.Brief{Greeting: hello},
			[]any{4 * time.Second, "please stop calling me", 1500 * time.Millisecond, "are you still there", 10 * time.Second},
			hello + " " + goodbye, "speech", "caller: please stop calling me",
		},
		"words in the disclosure": {
			pipeline.Brief{Disclosure: disclosed, Greeting: hello},
			[]any{time.Second, "take me off your list", 12 * time.Second},
			"", "speech", "caller: take me off your list",
		},
		"the key in the disclosure": {
			pipeline.Brief{Disclosure: disclosed, Greeting: hello},
			[]any{2 * time.Second, '9', 10 * time.Second},
			"", "key", "caller: [pressed 9]",
		},
		"the key later": {
			pipeline.Brief{Greeting: hello},
			[]any{4 * time.Second, '9', 10 * time.Second},
			hello + " " + goodbye, "key", "caller: [pressed 9]",
		},
		"a phrase of its own": {
			pipeline.Brief{Greeting: hello},
			[]any{4 * time.Second, "enough of this", 10 * time.Second},
			hello + " " + goodbye, "speech", "caller: enough of this",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			c.brief.OptOuts = pipeline.OptOuts{Key: "9", Phrases: []string{"Enough of this!"}, Keep: k.keep}
			x := start(t, fake.Typical(), c.brief)
			x.act(c.caller...)
			o := x.wait()
			if got := x.plainly(); o.Reason != pipeline.AgentHungUp || !strings.HasSuffix(got, goodbye) || c.heard != "" && got != c.heard {
				t.Errorf("%s: %s, the caller heard %q", name, o.Reason, got)
			}
			if strings.Count(x.plainly(), goodbye) != 1 || c.brief.Disclosure != "" && strings.Contains(x.plainly(), hello) {
				t.Errorf("%s: the caller heard %q", name, x.plainly())
			}
			if got := k.sources(); got != c.kept || !strings.Contains(strings.Join(lines(o), "\n"), c.line) {
				t.Errorf("%s: kept %q, lines %q", name, got, lines(o))
			}
			if over := time.Since(x.began); k.at[0].Sub(x.began) > over-1500*time.Millisecond {
				t.Errorf("%s: it is kept after %v of %v", name, k.at[0].Sub(x.began), over)
			}
		})
	}
}

// plainly is what the caller heard, without dots.
func (c *call) plainly() string { return strings.ReplaceAll(c.words(), ".", "") }

// act says, waits and presses, until the call is over.
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

// TestOptOutNot: a number that has the digit, another key, and other words end
// nothing; nor does anything where nobody keeps it.
func TestOptOutNot(t *testing.T) {
	for name, c := range map[string]struct {
		keep   bool
		caller []any
	}{
		"a number":       {true, []any{4 * time.Second, '1', 300 * time.Millisecond, '9', 300 * time.Millisecond, '9', 4 * time.Second}},
		"another key":    {true, []any{4 * time.Second, '1', 4 * time.Second}},
		"other words":    {true, []any{4 * time.Second, "do not call it quits", 4 * time.Second}},
		"nobody listens": {false, []any{4 * time.Second, "stop calling me", 4 * time.Second, '9', 4 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			b := pipeline.Brief{Greeting: hello, OptOuts: pipeline.OptOuts{Key: "9"}}
			if c.keep {
				b.OptOuts.Keep = k.keep
			}
			x := start(t, fake.Typical(), b)
			x.act(c.caller...)
			if o := x.hangup(); o.Reason != pipeline.CallerHungUp || k.sources() != "" {
				t.Errorf("%s: %s, kept %q", name, o.Reason, k.sources())
			}
		})
	}
}

// TestOptOutAtTheEnd: who presses the key, or says it, and hangs up at once is not
// called again either; and the call waits until that is kept.
func TestOptOutAtTheEnd(t *testing.T) {
	for _, last := range []any{'9', "do not call me again"} {
		synctest.Test(t, func(t *testing.T) {
			k := kept{slow: 20 * time.Second}
			x := start(t, fake.Typical(), pipeline.Brief{Greeting: hello, OptOuts: pipeline.OptOuts{Key: "9", Keep: k.keep}})
			x.act(4*time.Second, last, 20*time.Millisecond)
			if o := x.hangup(); o.Reason != pipeline.CallerHungUp || len(k.all) != 1 {
				t.Errorf("%v: %s, kept %q", last, o.Reason, k.sources())
			}
		})
	}
}

// TestOptOutTool: the model may notice itself. What it says with it is said, then
// the goodbye; where it cannot be kept yet, the call ends nevertheless.
func TestOptOutTool(t *testing.T) {
	for _, err := range []error{nil, errors.New("the database is away")} {
		synctest.Test(t, func(t *testing.T) {
			k := kept{err: err}
			s := calls("opt_out", "{}", "")
			x := start(t, s, pipeline.Brief{Greeting: hello, OptOuts: pipeline.OptOuts{Keep: k.keep}})
			x.act(4*time.Second, "i would rather not be bothered", 300*time.Millisecond, "hello hello", 20*time.Second)
			o := x.wait()
			if o.Reason != pipeline.AgentHungUp || k.sources() == "" || err == nil && !strings.HasSuffix(x.plainly(), goodbye) {
				t.Errorf("%v: %s, kept %q, the caller heard %q, lines %q", err, o.Reason, k.sources(), x.plainly(), lines(o))
			}
		})
	}
}

// TestOptOutMute: where no voice can say goodbye, the call ends without.
func TestOptOutMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k kept
		s := fake.Typical()
		s.Fault = func(p fake.Provider, n int) fake.Fault {
			if p == fake.TTS && n > 4 {
				return fake.Hang
			}
			return fake.None
		}
		x := start(t, s, pipeline.Brief{Greeting: hello, OptOuts: pipeline.OptOuts{Key: "9", Keep: k.keep}})
		x.act(6*time.Second, '9', 20*time.Second)
		if o := x.wait(); o.Reason != pipeline.AgentHungUp || k.sources() != "key" {
			t.Errorf("%s after %v, kept %q", o.Reason, time.Since(x.began), k.sources())
		}
	})
}
