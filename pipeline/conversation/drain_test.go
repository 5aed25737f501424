package conversation_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// TestDrain checks that a draining agent says goodbye once and hangs up, and that during a
// disclosure it hangs up without a goodbye.
func TestDrain(t *testing.T) {
	const leaving = "i have to go now goodbye"
	for name, c := range map[string]struct {
		brief  pipeline.SessionConfig
		before []any // words and waits of the caller before the drain
		after  []any
		reason pipeline.Reason
		says   string
	}{
		"while nobody speaks":   {pipeline.SessionConfig{Greeting: hello}, []any{6 * time.Second}, []any{12 * time.Second}, pipeline.Stopped, hello + " " + leaving},
		"while it speaks":       {pipeline.SessionConfig{Greeting: hello}, []any{600 * time.Millisecond}, []any{12 * time.Second}, pipeline.Stopped, leaving},
		"while the caller does": {pipeline.SessionConfig{Greeting: hello}, []any{4 * time.Second}, []any{"but I have a question", 12 * time.Second}, pipeline.Stopped, leaving},
		"in a disclosure":       {pipeline.SessionConfig{Disclosure: disclosed, Greeting: hello}, []any{time.Second}, []any{12 * time.Second}, pipeline.Stopped, ""},
		"after an opt-out": {
			pipeline.SessionConfig{Greeting: hello}, []any{4 * time.Second, "please stop calling me", time.Second}, []any{12 * time.Second}, pipeline.AgentHungUp, goodbye,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			leave := make(chan struct{})
			c.brief.Drain, c.brief.OptOuts = leave, pipeline.OptOutConfig{Store: k.keep}
			x := start(t, fakeprovider.Typical(), c.brief)
			x.act(c.before...)
			began := time.Now()
			close(leave)
			x.act(c.after...)
			o := x.wait()
			if got := x.plainly(); o.Reason != c.reason || !strings.HasSuffix(got, c.says) || c.says == "" && strings.Contains(got, leaving) {
				t.Errorf("%s: %s, the caller heard %q", name, o.Reason, got)
			}
			if took := time.Since(began); took > 14*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}
