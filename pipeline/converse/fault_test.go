package converse_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// lastLoud is when the caller last heard anything, from the beginning.
func lastLoud(pcm []int16) time.Duration {
	for i := len(pcm) - 160; i >= 0; i -= 160 {
		if tone.Level(pcm[i:i+160]) > -45 {
			return time.Duration(i/160+1) * media.FrameTime
		}
	}
	return 0
}

func TestBargeIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fake.Typical()
		script.Reply = func(m []fake.Message) string {
			if len(m) < 3 {
				return "one two three four five six seven eight nine ten eleven twelve"
			}
			return "fine"
		}
		c := start(t, script, pipeline.Brief{})
		c.pass(500 * time.Millisecond)
		c.say("count please")
		c.pass(2 * time.Second) // into the answer
		spoke := time.Since(c.began)
		c.say("stop it now please")
		stopped := lastLoud(c.Heard())
		// 160 milliseconds make a barge-in; a frame is under way in each direction,
		// and the voice fades.
		if d := stopped - spoke; d > 250*time.Millisecond {
			t.Errorf("the agent fell silent %v after the caller began", d)
		}
		c.pass(3 * time.Second)
		heard := c.words()
		o := c.hangup()
		var agent []string
		for _, l := range o.Lines {
			if l.Role == pipeline.RoleAgent {
				agent = append(agent, l.Text)
			}
		}
		if len(agent) != 2 || !o.Lines[1].Interrupted || o.Turns[0].Ending != pipeline.Interrupted || !o.Turns[0].Interrupted {
			t.Fatalf("lines %+v, turns %+v", o.Lines, o.Turns)
		}
		// The history may differ from what was heard by the word that was cut.
		said, got := len(strings.Fields(agent[0])), len(strings.Fields(heard))-1
		if d := said - got; d < -1 || d > 1 {
			t.Errorf("history has %q, the caller heard %q", agent[0], heard)
		}
		if agent[1] != "fine" {
			t.Errorf("second answer %q", agent[1])
		}
	})
}

func TestCallerGoesOnBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fake.Typical()
		script.FirstToken = 500 * time.Millisecond
		c := start(t, script, pipeline.Brief{})
		c.pass(500 * time.Millisecond)
		c.say("i like tea")
		c.pass(500 * time.Millisecond) // committed, not yet answered
		c.say("green or black")
		c.pass(4 * time.Second)
		heard := c.words()
		o := c.hangup()
		if heard != "you said i like tea green or black" {
			t.Errorf("the caller heard %q", heard)
		}
		if want := []string{"caller: i like tea green or black", "agent: you said i like tea green or black"}; !slices.Equal(lines(o), want) {
			t.Errorf("lines %q", lines(o))
		}
		if len(o.Turns) != 1 || o.Turns[0].MergedFrom != 2 {
			t.Errorf("turns %+v", o.Turns)
		}
	})
}

// TestFaults breaks each provider in each way, once, and expects that the caller
// hears something within 2.5 s of falling silent and that the next turn works.
func TestFaults(t *testing.T) {
	for _, p := range []fake.Provider{fake.ASR, fake.LLM, fake.TTS} {
		for _, f := range []fake.Fault{fake.Refuse, fake.Hang, fake.Drop, fake.Stall, fake.Garble} {
			t.Run(string(p)+" "+string(f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { breakOnce(t, p, f) })
			})
		}
	}
}

func breakOnce(t *testing.T, p fake.Provider, f fake.Fault) {
	t.Helper()
	script := fake.Typical()
	broken := map[fake.Provider]int{fake.LLM: 0, fake.TTS: 3} // the first three speak the canned lines
	script.Fault = func(q fake.Provider, n int) fake.Fault {
		if at, ok := broken[p]; q == p && (!ok && n == 0 || ok && n == at) {
			return f
		}
		return fake.None
	}
	c := start(t, script, pipeline.Brief{})
	c.pass(3 * time.Second)
	c.say("what is your name")
	silent := time.Since(c.began)
	c.pass(9 * time.Second)
	first := time.Duration(0)
	for _, w := range c.timed() {
		if w.Start > silent {
			first = w.Start
			break
		}
	}
	if first == 0 || first-silent > 2500*time.Millisecond {
		t.Errorf("the caller heard the first word after %v: %q", first-silent, c.words())
	}
	c.say("hello again")
	c.pass(4 * time.Second)
	heard := c.words()
	o := c.hangup()
	if !strings.HasSuffix(heard, "you said hello again") {
		t.Errorf("the caller heard %q", heard)
	}
	if o.Reason != pipeline.CallerHungUp {
		t.Errorf("reason %q: %v", o.Reason, o.Err)
	}
	for _, turn := range o.Turns {
		if turn.Ending == "" {
			t.Errorf("turn %d has no ending", turn.Number)
		}
	}
}

func TestBrokenForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fake.Typical()
		script.Fault = func(p fake.Provider, _ int) fake.Fault {
			if p == fake.LLM {
				return fake.Refuse
			}
			return fake.None
		}
		c := start(t, script, pipeline.Brief{})
		c.pass(3 * time.Second)
		for range 3 {
			c.say("are you there")
			c.pass(6 * time.Second)
		}
		o := c.wait()
		if o.Reason != pipeline.AgentError || o.Err == nil {
			t.Errorf("reason %q, err %v", o.Reason, o.Err)
		}
		if got := strings.Count(strings.Join(lines(o), "\n"), "Sorry"); got != 3 {
			t.Errorf("%d apologies: %q", got, lines(o))
		}
	})
}

func TestNobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fake.Typical(), pipeline.Brief{Greeting: "hello"})
		o := c.wait()
		if o.Reason != pipeline.Inactive {
			t.Errorf("reason %q", o.Reason)
		}
		if got := strings.Count(strings.Join(lines(o), "\n"), "Are you still there?"); got != 2 {
			t.Errorf("%d nudges: %q", got, lines(o))
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fake.Typical(), pipeline.Brief{Greeting: "hello", MaxDuration: 5 * time.Second})
		if o := c.wait(); o.Reason != pipeline.TooLong || time.Since(c.began) > 5100*time.Millisecond {
			t.Errorf("reason %q after %v", o.Reason, time.Since(c.began))
		}
	})
}

func TestUnknownProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := pipetest.New(fake.Script{})
		defer func() { _ = stage.Close() }()
		e := pipetest.Fake()
		e.LLM.Provider = "oracle"
		err := stage.Check(e)
		if err == nil || !strings.Contains(err.Error(), `speech.llm.provider: "oracle"`) || !strings.Contains(err.Error(), "accepted: fake") {
			t.Errorf("error %v", err)
		}
	})
}
