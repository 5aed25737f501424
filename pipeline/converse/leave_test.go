package converse_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

// TestLeave: an agent that must go says goodbye, whatever it was saying or the
// party says, and the call is stopped. Who hears a disclosure, which nobody may
// interrupt, hears no goodbye; nor is there a second one.
func TestLeave(t *testing.T) {
	const leaving = "i have to go now goodbye"
	for name, c := range map[string]struct {
		brief  pipeline.Brief
		before []any // what passes before it must go
		after  []any
		reason pipeline.Reason
		says   string
	}{
		"while nobody speaks":  {pipeline.Brief{Greeting: hello}, []any{6 * time.Second}, []any{12 * time.Second}, pipeline.Stopped, hello + " " + leaving},
		"while it speaks":      {pipeline.Brief{Greeting: hello}, []any{600 * time.Millisecond}, []any{12 * time.Second}, pipeline.Stopped, leaving},
		"while the party does": {pipeline.Brief{Greeting: hello}, []any{4 * time.Second}, []any{"but I have a question", 12 * time.Second}, pipeline.Stopped, leaving},
		"in a disclosure":      {pipeline.Brief{Disclosure: disclosed, Greeting: hello}, []any{time.Second}, []any{12 * time.Second}, pipeline.Stopped, ""},
		"after an opt-out": {
			pipeline.Brief{Greeting: hello}, []any{4 * time.Second, "please stop calling me", time.Second}, []any{12 * time.Second}, pipeline.AgentHungUp, goodbye,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var k kept
			leave := make(chan struct{})
			c.brief.Leave, c.brief.OptOuts = leave, pipeline.OptOuts{Keep: k.keep}
			x := start(t, fake.Typical(), c.brief)
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
