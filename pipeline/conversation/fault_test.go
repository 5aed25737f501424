package conversation_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// lastLoud returns when the caller last heard a sound, from the start of the call.
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
		script := fakeprovider.Typical()
		script.Reply = func(m []fakeprovider.Message) string {
			if len(m) < 3 {
				return "one two three four five six seven eight nine ten eleven twelve"
			}
			return "fine"
		}
		c := start(t, script, pipeline.SessionConfig{})
		c.pass(500 * time.Millisecond)
		c.say("count please")
		c.pass(2 * time.Second) // until the agent is in the middle of its answer
		spoke := time.Since(c.began)
		c.say("stop it now please")
		stopped := lastLoud(c.Output())
		// A barge-in takes 160 ms of voice, one frame in each direction, and the fade-out.
		if d := stopped - spoke; d > 250*time.Millisecond {
			t.Errorf("the agent stopped %v after the caller began", d)
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
		// The word that was cut may be decoded differently.
		said, got := len(strings.Fields(agent[0])), len(strings.Fields(heard))-1
		if d := said - got; d < -1 || d > 1 {
			t.Errorf("history has %q, the caller heard %q", agent[0], heard)
		}
		if agent[1] != "fine" {
			t.Errorf("second answer %q", agent[1])
		}
	})
}

func TestRetractedReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.FirstToken = 500 * time.Millisecond
		c := start(t, script, pipeline.SessionConfig{})
		c.pass(500 * time.Millisecond)
		c.say("i like tea")
		c.pass(500 * time.Millisecond) // the turn is committed and not yet answered
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

// TestFaults breaks each provider in each way once. The caller must hear something within 2.5 s
// after the end of the words, and the next turn must work.
func TestFaults(t *testing.T) {
	for _, p := range []fakeprovider.Provider{fakeprovider.ASR, fakeprovider.LLM, fakeprovider.TTS} {
		for _, f := range []fakeprovider.Fault{fakeprovider.Refuse, fakeprovider.Hang, fakeprovider.Drop, fakeprovider.Stall, fakeprovider.Garble} {
			t.Run(string(p)+" "+string(f), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { breakOnce(t, p, f) })
			})
		}
	}
}

func breakOnce(t *testing.T, p fakeprovider.Provider, f fakeprovider.Fault) {
	t.Helper()
	script := fakeprovider.Typical()
	broken := map[fakeprovider.Provider]int{fakeprovider.LLM: 0, fakeprovider.TTS: 3} // the first three requests synthesize phrases
	script.Fault = func(q fakeprovider.Provider, n int) fakeprovider.Fault {
		if at, ok := broken[p]; q == p && (!ok && n == 0 || ok && n == at) {
			return f
		}
		return fakeprovider.None
	}
	c := start(t, script, pipeline.SessionConfig{})
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

func TestPermanentFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fakeprovider.Typical()
		script.Fault = func(p fakeprovider.Provider, _ int) fakeprovider.Fault {
			if p == fakeprovider.LLM {
				return fakeprovider.Refuse
			}
			return fakeprovider.None
		}
		c := start(t, script, pipeline.SessionConfig{})
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

func TestNudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: "hello"})
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
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: "hello", MaxDuration: 5 * time.Second})
		if o := c.wait(); o.Reason != pipeline.MaxDurationReached || time.Since(c.began) > 5100*time.Millisecond {
			t.Errorf("reason %q after %v", o.Reason, time.Since(c.began))
		}
	})
}

func TestUnknownProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := pipetest.New(fakeprovider.Script{})
		defer func() { _ = stage.Close() }()
		e := pipetest.FakeEngines()
		e.LLM.Provider = "oracle"
		err := stage.Check(e)
		if err == nil || !strings.Contains(err.Error(), `speech.llm.provider: "oracle"`) || !strings.Contains(err.Error(), "accepted: fake") {
			t.Errorf("error %v", err)
		}
	})
}
