package converse_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
)

const disclosed = "this is anna calling for acme i am an automated voice press nine"

// disclosing is a call that begins with a disclosure.
func disclosing(t *testing.T, greeting string, policy pipeline.Voicemail) *call {
	t.Helper()
	return start(t, fake.Typical(), pipeline.Brief{Disclosure: disclosed, Greeting: greeting, Voicemail: policy, VoicemailMessage: message})
}

// TestDisclosure: the disclosure comes first and is heard to its end, whatever the
// caller does; then the agent greets, and can be interrupted as ever.
func TestDisclosure(t *testing.T) {
	for name, c := range map[string]struct {
		greeting string
		caller   []any
		heard    string
		lines    []string
		turns    int
	}{
		"a caller who listens": {
			hello,
			[]any{7 * time.Second, "thank you", 3 * time.Second},
			disclosed + " " + hello + " you said thank you",
			[]string{"agent: " + disclosed, "agent: " + hello, "caller: thank you", "agent: you said thank you"},
			2,
		},
		"a caller who talks over it": {
			hello,
			[]any{time.Second, "stop it please", 500 * time.Millisecond, "do you hear me", 6 * time.Second},
			disclosed + " " + hello,
			[]string{"agent: " + disclosed, "caller: stop it please do you hear me", "agent: " + hello},
			1,
		},
		"an agent that lets the caller begin": {
			"",
			[]any{7 * time.Second, "hello", 3 * time.Second},
			disclosed + " you said hello",
			[]string{"agent: " + disclosed, "caller: hello", "agent: you said hello"},
			2,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := disclosing(t, c.greeting, "")
			callee(x, c.caller...)
			got := x.words()
			o := x.hangup()
			if got != c.heard {
				t.Errorf("%s: the caller heard %q, want %q", name, got, c.heard)
			}
			if !slices.Equal(lines(o), c.lines) || len(o.Turns) != c.turns {
				t.Errorf("%s: %d turns, lines %q", name, len(o.Turns), lines(o))
			}
			for i, turn := range o.Turns {
				checkTurn(t, turn, i)
			}
		})
	}
}

// TestDisclosureKey: a key that is pressed while the disclosure is said is
// answered after it, in place of the greeting.
func TestDisclosureKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := disclosing(t, hello, "")
		x.pass(2 * time.Second)
		x.Press('9')
		x.pass(10 * time.Second)
		got := x.words()
		o := x.hangup()
		if !strings.HasPrefix(got, disclosed) || strings.Contains(got, hello) || len(got) == len(disclosed) {
			t.Errorf("the caller heard %q", got)
		}
		if l := lines(o); len(l) < 2 || l[0] != "agent: "+disclosed || !strings.Contains(l[1], "[pressed") {
			t.Errorf("lines %q", l)
		}
	})
}

// TestDisclosureCut: of a disclosure that the caller hung up in, the transcript has
// what was heard.
func TestDisclosureCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := disclosing(t, hello, "")
		x.pass(1500 * time.Millisecond)
		o := x.hangup()
		if len(o.Lines) != 1 || !o.Lines[0].Interrupted || !strings.HasPrefix(disclosed, o.Lines[0].Text) || len(o.Turns) != 1 {
			t.Errorf("%+v, %d turns", o.Lines, len(o.Turns))
		}
	})
}

// TestDisclosureUnsaid: where it cannot be said, there is no call.
func TestDisclosureUnsaid(t *testing.T) {
	for _, f := range []fake.Fault{fake.Hang, fake.Stall, fake.Refuse, fake.Drop, fake.Garble} {
		synctest.Test(t, func(t *testing.T) {
			s := fake.Typical()
			s.Fault = func(p fake.Provider, _ int) fake.Fault {
				if p == fake.TTS {
					return f
				}
				return fake.None
			}
			x := start(t, s, pipeline.Brief{Disclosure: disclosed, Greeting: hello})
			if o := x.wait(); o.Reason != pipeline.AgentError || o.Err == nil || strings.Contains(x.words(), hello) || time.Since(x.began) > 10*time.Second {
				t.Errorf("%s: %q after %v, %v, the caller heard %q", f, o.Reason, time.Since(x.began), o.Err, x.words())
			}
		})
	}
}

// TestDisclosureParty: who answers is looked at before anything is said; a machine
// is told the disclosure at the head of its message.
func TestDisclosureParty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := disclosing(t, hello, pipeline.VoicemailLeave)
		callee(x, 500*time.Millisecond, "hello", time.Second, "who is this please tell me now", 8*time.Second)
		if got := x.words(); got != disclosed+" "+hello {
			t.Errorf("a person heard %q", got)
		}
		x.hangup()
	})
	synctest.Test(t, func(t *testing.T) {
		x := disclosing(t, hello, pipeline.VoicemailLeave)
		callee(x, 500*time.Millisecond, "you have reached the voicemail of bob please leave a message after the tone", 300*time.Millisecond, "beep")
		o := x.wait()
		if got := x.words(); got != disclosed+" "+message || o.Reason != pipeline.VoicemailLeft {
			t.Errorf("a machine heard %q, %s", got, o.Reason)
		}
	})
}
