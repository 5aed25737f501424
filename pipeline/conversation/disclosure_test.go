package conversation_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

const disclosed = "this is anna calling for acme i am an automated voice press nine"

func disclosing(t *testing.T, greeting string, policy pipeline.Voicemail) *call {
	t.Helper()
	return start(t, fakeprovider.Typical(), pipeline.SessionConfig{Disclosure: disclosed, Greeting: greeting, Voicemail: policy, VoicemailMessage: message})
}

// TestDisclosure checks that nothing interrupts the disclosure, and that the greeting after it
// can be interrupted.
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

// TestDisclosureTiming checks that the first turn ends when the disclosure is audible, and that
// the length of the disclosure is reported separately.
func TestDisclosureTiming(t *testing.T) {
	for _, policy := range []pipeline.Voicemail{"", pipeline.VoicemailLeave} {
		synctest.Test(t, func(t *testing.T) {
			x := disclosing(t, hello, policy)
			callee(x, 500*time.Millisecond, "hello", 12*time.Second, "thank you", 3*time.Second)
			o := x.hangup()
			if len(o.Turns) != 2 {
				t.Fatalf("%d turns, lines %q", len(o.Turns), lines(o))
			}
			first := o.Turns[0]
			if first.Total() > 2*time.Second || first.Raw["disclosure_ms"] < 2*time.Second || first.Raw["disclosure_ms"] > 8*time.Second {
				t.Errorf("voicemail %q: the first turn took %v, the disclosure %v", policy, first.Total(), first.Raw["disclosure_ms"])
			}
			if d, ok := o.Turns[1].Raw["disclosure_ms"]; ok {
				t.Errorf("second turn has disclosure_ms %v", d)
			}
		})
	}
}

// TestDisclosureKey checks that a key pressed during the disclosure is answered after it,
// without the greeting.
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

// TestDisclosureCut checks that the transcript has only the part of the disclosure that the
// callee heard.
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

// TestDisclosureFailure checks that a call ends if its disclosure cannot be spoken.
func TestDisclosureFailure(t *testing.T) {
	for _, f := range []fakeprovider.Fault{fakeprovider.Hang, fakeprovider.Stall, fakeprovider.Refuse, fakeprovider.Drop, fakeprovider.Garble} {
		synctest.Test(t, func(t *testing.T) {
			s := fakeprovider.Typical()
			s.Fault = func(p fakeprovider.Provider, _ int) fakeprovider.Fault {
				if p == fakeprovider.TTS {
					return f
				}
				return fakeprovider.None
			}
			x := start(t, s, pipeline.SessionConfig{Disclosure: disclosed, Greeting: hello})
			if o := x.wait(); o.Reason != pipeline.AgentError || o.Err == nil || strings.Contains(x.words(), hello) || time.Since(x.began) > 10*time.Second {
				t.Errorf("%s: %q after %v, %v, the caller heard %q", f, o.Reason, time.Since(x.began), o.Err, x.words())
			}
		})
	}
}

// TestDisclosureParty checks that a person hears the disclosure before the greeting, and that a
// voicemail message begins with it.
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
