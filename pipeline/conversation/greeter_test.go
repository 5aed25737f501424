package conversation_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

const (
	hello   = "hello this is parley"
	message = "please call anna back at noon thank you"
)

// callee plays parts to the agent: words, lengths of silence, and a machine's tone for "beep".
func callee(c *call, parts ...any) (ended time.Duration) {
	for _, p := range parts {
		switch p := p.(type) {
		case time.Duration:
			c.pass(p)
		case string:
			if p == "beep" {
				c.Say(tone.Sine(c.Rate(), c.Rate()*4/10, 1000, 0.2))
				c.pass(400 * time.Millisecond)
			} else {
				c.say(p)
			}
			ended = time.Since(c.began)
		}
	}
	return ended
}

func party(t *testing.T, policy pipeline.Voicemail) *call {
	t.Helper()
	return start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: hello, Voicemail: policy, VoicemailMessage: message})
}

// first returns when the caller heard the first word after from; -1 if there was none.
func (c *call) first(from time.Duration) time.Duration {
	for _, w := range c.timed() {
		if w.Start >= from-40*time.Millisecond {
			return w.Start
		}
	}
	return -1
}

func policies() []pipeline.Voicemail {
	return []pipeline.Voicemail{pipeline.VoicemailHangup, pipeline.VoicemailLeave, pipeline.VoicemailContinue}
}

// TestPersonAnswers checks, with each voicemail policy, that a person is greeted within 700 ms
// and can talk.
func TestPersonAnswers(t *testing.T) {
	for _, policy := range policies() {
		for words, within := range map[string]time.Duration{
			"hello": 700 * time.Millisecond, "good morning northern tools this is anna speaking how may i help": 700 * time.Millisecond,
		} {
			synctest.Test(t, func(t *testing.T) {
				c := party(t, policy)
				ended := callee(c, 600*time.Millisecond, words)
				c.pass(4 * time.Second)
				c.say("what is it about")
				c.pass(5 * time.Second)
				heard, at := c.words(), c.first(0)
				o := c.hangup()
				if at < ended || at > ended+within {
					t.Errorf("%s: %q over at %v, the agent speaks at %v", policy, words, ended, at)
				}
				if heard != hello+" you said what is it about" {
					t.Errorf("%s: %q: the callee heard %q", policy, words, heard)
				}
				want := []string{"caller: " + words, "agent: " + hello, "caller: what is it about", "agent: you said what is it about"}
				if !slices.Equal(lines(o), want) {
					t.Errorf("%s: lines %q", policy, lines(o))
				}
				if by := o.AnsweredBy; by == nil || by.Party != "human" || by.Confidence == 0 || by.Evidence == "" || by.After <= ended || by.After > ended+700*time.Millisecond {
					t.Errorf("%s: %q answered by %+v", policy, words, by)
				}
				for i, turn := range o.Turns {
					checkTurn(t, turn, i)
				}
				if d := o.Turns[0].Total(); d > within {
					t.Errorf("%s: the greeting took %v", policy, d)
				}
			})
		}
	}
}

// TestSilentCallee checks that a silent callee is greeted. After the callee's first words, the callee counts as a
// person.
func TestSilentCallee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := party(t, pipeline.VoicemailHangup)
		c.pass(6 * time.Second)
		if at := c.first(0); at < 1440*time.Millisecond || at > 1700*time.Millisecond {
			t.Errorf("the agent speaks at %v", at)
		}
		c.say("yes hello")
		c.pass(4 * time.Second)
		heard := c.words()
		if o := c.hangup(); o.AnsweredBy.Party != "human" || heard != hello+" you said yes hello" {
			t.Errorf("answered by %+v, heard %q", o.AnsweredBy, heard)
		}
	})
}

func TestNoDetection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := party(t, "")
		c.pass(3 * time.Second)
		at := c.first(0)
		if o := c.hangup(); o.AnsweredBy != nil || at > 500*time.Millisecond {
			t.Errorf("answered by %+v, the agent speaks at %v", o.AnsweredBy, at)
		}
	})
}

// told is what an answering machine says.
const told = "you have reached anna please leave a message after the tone"

func TestMachineAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy pipeline.Voicemail
		parts  []any
		reason pipeline.Reason // why the agent leaves; empty if it stays
		by     string
		heard  string
		within time.Duration // limit from the end of the machine's greeting to the agent's last speech
	}{
		{"hang up", pipeline.VoicemailHangup, []any{400 * time.Millisecond, told, 600 * time.Millisecond, "beep"}, pipeline.VoicemailReached, "voicemail", "", 0},
		{"hang up, by the beep alone", pipeline.VoicemailHangup, []any{400 * time.Millisecond, "hi", 250 * time.Millisecond, "beep"}, pipeline.VoicemailReached, "voicemail", "", 0},
		{"message", pipeline.VoicemailLeave, []any{400 * time.Millisecond, told, 600 * time.Millisecond, "beep"}, pipeline.VoicemailLeft, "voicemail", message, 120 * time.Millisecond},
		{"message, a long wait for the beep", pipeline.VoicemailLeave, []any{400 * time.Millisecond, told, 1800 * time.Millisecond, "beep"}, pipeline.VoicemailLeft, "voicemail", message, 120 * time.Millisecond},
		{"message, no beep", pipeline.VoicemailLeave, []any{400 * time.Millisecond, told}, pipeline.VoicemailLeft, "voicemail", message, 2200 * time.Millisecond},
		{"continue", pipeline.VoicemailContinue, []any{400 * time.Millisecond, told, 600 * time.Millisecond, "beep"}, "", "voicemail", "you said " + told, 850 * time.Millisecond},
		{"menu", pipeline.VoicemailHangup, []any{400 * time.Millisecond, "for sales press one"}, pipeline.IVRReached, "ivr", "", 0},
		{"menu, nothing to leave", pipeline.VoicemailLeave, []any{400 * time.Millisecond, "for sales press one"}, pipeline.IVRReached, "ivr", "", 0},
		{"menu, continue", pipeline.VoicemailContinue, []any{400 * time.Millisecond, "for sales press one"}, "", "ivr", "you said for sales press one", 1700 * time.Millisecond},
		{"screening", pipeline.VoicemailHangup, []any{400 * time.Millisecond, "please state your name"}, "", "ivr", "you said please state your name", 1700 * time.Millisecond},
		{"screening, message", pipeline.VoicemailLeave, []any{400 * time.Millisecond, "please state your name"}, "", "ivr", "you said please state your name", 1700 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := party(t, tt.policy)
				ended := callee(c, tt.parts...)
				c.pass(7 * time.Second)
				heard, at := c.words(), c.first(ended)
				if tt.reason == "" {
					tt.reason = pipeline.CallerHungUp
					c.hangup()
				}
				o := c.wait()
				if o.Reason != tt.reason || o.AnsweredBy == nil || o.AnsweredBy.Party != tt.by {
					t.Errorf("ended with %s, answered by %+v", o.Reason, o.AnsweredBy)
				}
				if heard != tt.heard {
					t.Errorf("the machine heard %q, want %q", heard, tt.heard)
				}
				if tt.within > 0 && (at < ended || at > ended+tt.within) {
					t.Errorf("the machine ended at %v, the agent speaks at %v", ended, at)
				}
				if got := strings.Join(lines(o), "\n"); tt.heard == message && got != "caller: "+told+"\nagent: "+message {
					t.Errorf("lines %q", got)
				}
			})
		})
	}
}

// TestMachineThatPauses checks that the agent greets a machine that pauses like a person, and then applies the
// policy.
func TestMachineThatPauses(t *testing.T) {
	for policy, want := range map[pipeline.Voicemail]pipeline.Reason{
		pipeline.VoicemailHangup: pipeline.VoicemailReached, pipeline.VoicemailLeave: pipeline.VoicemailLeft, pipeline.VoicemailContinue: pipeline.CallerHungUp,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := party(t, policy)
			ended := callee(c, 400*time.Millisecond, "hi this is anna", 500*time.Millisecond, "i am out leave a message after the tone", 700*time.Millisecond, "beep")
			c.pass(6 * time.Second)
			at := c.first(ended)
			heard := c.words()
			o := c.hangup()
			if o.Reason != want || o.AnsweredBy.Party != "voicemail" {
				t.Errorf("%s: ended with %s, answered by %+v, lines %q", policy, o.Reason, o.AnsweredBy, lines(o))
			}
			if policy == pipeline.VoicemailLeave && (!strings.HasSuffix(heard, message) || at > ended+120*time.Millisecond) {
				t.Errorf("the machine heard %q; the beep ended at %v, the message began at %v", heard, ended, at)
			}
		})
	}
}

func TestLateBeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := party(t, pipeline.VoicemailLeave)
		ended := callee(c, 400*time.Millisecond, told, 3*time.Second, "beep")
		c.pass(6 * time.Second)
		var after []string
		for _, w := range c.timed() {
			if w.Start >= ended {
				after = append(after, w.Text)
			}
		}
		if o := c.wait(); o.Reason != pipeline.VoicemailLeft || strings.Join(after, " ") != message || c.first(ended) > ended+180*time.Millisecond {
			t.Errorf("ended with %s; after the beep, which ended at %v, %q from %v", o.Reason, ended, after, c.first(ended))
		}
	})
}

func TestModelWritesMessage(t *testing.T) {
	for reply, want := range map[string]pipeline.Reason{"call me": pipeline.VoicemailLeft, "": pipeline.VoicemailReached} {
		synctest.Test(t, func(t *testing.T) {
			s := fakeprovider.Typical()
			s.Reply = func(m []fakeprovider.Message) string {
				if !strings.Contains(m[len(m)-1].Content, "answering machine") {
					return "no"
				}
				return reply
			}
			c := talkOn(t, pipetest.New(s), pipeline.SessionConfig{Engines: pipetest.FakeEngines(), Greeting: hello, Voicemail: pipeline.VoicemailLeave})
			callee(c, 400*time.Millisecond, told, 600*time.Millisecond, "beep")
			c.pass(4 * time.Second)
			if o := c.wait(); o.Reason != want || c.words() != reply {
				t.Errorf("the model says %q: ended with %s, heard %q", reply, o.Reason, c.words())
			}
		})
	}
}

// TestNoCallee checks calls in which a fax machine or a network announcement answers.
func TestNoCallee(t *testing.T) {
	for want, play := range map[string]func(c *call){
		"fax": func(c *call) { c.Say(tone.Sine(8000, 8000*3, 2100, 0.2)) },
		"unknown": func(c *call) {
			c.Say(slices.Concat(tone.Sine(8000, 2640, 950, 0.2), tone.Sine(8000, 2640, 1400, 0.2), tone.Sine(8000, 2640, 1777, 0.2)))
		},
	} {
		for _, policy := range policies() {
			synctest.Test(t, func(t *testing.T) {
				c := party(t, policy)
				c.pass(500 * time.Millisecond)
				play(c)
				c.pass(4 * time.Second)
				c.hangup()
				if o := c.outcome; o.Reason != pipeline.AgentHungUp || o.AnsweredBy.Party != want || c.words() != "" || len(o.Turns) > 0 {
					t.Errorf("%s: ended with %s, answered by %+v, heard %q, turns %+v", policy, o.Reason, o.AnsweredBy, c.words(), o.Turns)
				}
			})
		}
	}
}

// TestPersonMentionsVoicemail checks that words after the agent's first words, and a later
// beep, do not count as signs of a machine.
func TestPersonMentionsVoicemail(t *testing.T) {
	for _, after := range []time.Duration{1200 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: hello + " from acme and this call is about your order", Voicemail: pipeline.VoicemailHangup})
			callee(c, 400*time.Millisecond, "hello", after, "he is not available leave a message", 3*time.Second, "beep", 3*time.Second)
			if o := c.hangup(); o.Reason != pipeline.CallerHungUp || o.AnsweredBy.Party != "human" {
				t.Errorf("after %v: ended with %s, answered by %+v, lines %q", after, o.Reason, o.AnsweredBy, lines(o))
			}
		})
	}
}

// TestMessagePronunciation checks that the voice gets the configured pronunciation, and the transcript the written
// form.
func TestMessagePronunciation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{
			Greeting: hello, Voicemail: pipeline.VoicemailLeave, VoicemailMessage: "call ACME please",
			Pronunciation: map[string]string{"acme": "ack mee"},
		})
		callee(c, 400*time.Millisecond, told, 600*time.Millisecond, "beep")
		c.pass(4 * time.Second)
		o := c.wait()
		if got := c.words(); got != "call ack mee please" || !slices.Contains(lines(o), "agent: call ACME please") {
			t.Errorf("heard %q, lines %q", got, lines(o))
		}
	})
}

// TestModelOpinion checks that the model decides who answered if the detector is unsure after a long greeting.
func TestModelOpinion(t *testing.T) {
	for answer, want := range map[string]pipeline.Reason{
		"Voicemail.": pipeline.VoicemailReached, "human": pipeline.CallerHungUp, "I cannot tell.": pipeline.CallerHungUp, "ivr": pipeline.IVRReached,
	} {
		for _, asks := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := fakeprovider.Typical()
				s.Reply = func(m []fakeprovider.Message) string {
					if strings.Contains(m[0].Content, "Who answered?") {
						return answer
					}
					return "no"
				}
				stage := pipetest.New(s)
				stage.Opinions = asks
				c := talkOn(t, stage, pipeline.SessionConfig{Engines: pipetest.FakeEngines(), Greeting: hello, Voicemail: pipeline.VoicemailHangup})
				callee(c, 400*time.Millisecond, "this is the telephone of anna and it is a very nice day to be outside")
				c.pass(5 * time.Second)
				o := c.hangup()
				if !asks {
					want = pipeline.CallerHungUp
				}
				if o.Reason != want {
					t.Errorf("Opinions %v, model says %q: ended with %s, answered by %+v", asks, answer, o.Reason, o.AnsweredBy)
				}
			})
		}
	}
}

// TestVoiceFailureBeforeGreeting checks that a person hears something although the voice fails.
func TestVoiceFailureBeforeGreeting(t *testing.T) {
	for _, f := range []fakeprovider.Fault{fakeprovider.Hang, fakeprovider.Stall, fakeprovider.Refuse, fakeprovider.Drop, fakeprovider.Garble} {
		synctest.Test(t, func(t *testing.T) {
			s := fakeprovider.Typical()
			s.Fault = func(p fakeprovider.Provider, _ int) fakeprovider.Fault {
				if p == fakeprovider.TTS {
					return f
				}
				return fakeprovider.None
			}
			c := talkOn(t, pipetest.New(s), pipeline.SessionConfig{Engines: pipetest.FakeEngines(), Greeting: hello, Voicemail: pipeline.VoicemailHangup})
			ended := callee(c, 500*time.Millisecond, "hello")
			c.pass(8 * time.Second)
			if at := firstSound(c.Output()); at < ended || at > ended+2500*time.Millisecond {
				t.Errorf("%s: the greeting was over at %v, the first sound comes at %v", f, ended, at)
			}
			c.hangup()
		})
	}
}
