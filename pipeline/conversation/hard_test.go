package conversation_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

func TestLateFinal(t *testing.T) {
	for _, lag := range []int{0, 150, 600, 900, 1200, 1900} {
		synctest.Test(t, func(t *testing.T) {
			s := fakeprovider.Typical()
			s.FinalLag = time.Duration(lag) * time.Millisecond
			c := start(t, s, pipeline.SessionConfig{})
			c.pass(time.Second)
			c.say("what is your name")
			c.pass(7 * time.Second)
			got := c.words()
			if o := c.hangup(); got != "you said what is your name" || len(o.Turns) != 1 {
				t.Errorf("final after %d ms: heard %q, %d turns", lag, got, len(o.Turns))
			}
		})
	}
}

func TestTwoFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeprovider.Typical()
		s.FinalLag = 600 * time.Millisecond
		c := start(t, s, pipeline.SessionConfig{})
		c.pass(time.Second)
		c.say("i want pizza")
		c.pass(260 * time.Millisecond)
		c.say("no cheese")
		c.pass(6 * time.Second)
		got := c.words()
		if o := c.hangup(); got != "you said i want pizza no cheese" {
			t.Errorf("heard %q, lines %q", got, lines(o))
		}
	})
}

func firstSound(pcm []int16) time.Duration {
	for i := 0; i+160 <= len(pcm); i += 160 {
		if tone.Level(pcm[i:i+160]) > -45 {
			return time.Duration(i/160) * 20 * time.Millisecond
		}
	}
	return -1
}

// TestGreetingVoiceFailure checks that a callee hears something although the voice fails.
func TestGreetingVoiceFailure(t *testing.T) {
	for _, f := range []fakeprovider.Fault{fakeprovider.Hang, fakeprovider.Stall, fakeprovider.Refuse, fakeprovider.Drop, fakeprovider.Garble} {
		synctest.Test(t, func(t *testing.T) {
			s := fakeprovider.Typical()
			s.Fault = func(p fakeprovider.Provider, _ int) fakeprovider.Fault {
				if p == fakeprovider.TTS {
					return f
				}
				return fakeprovider.None
			}
			c := start(t, s, pipeline.SessionConfig{Greeting: "hello this is parley"})
			c.pass(8 * time.Second)
			if at := firstSound(c.Output()); at < 0 || at > 2500*time.Millisecond {
				t.Errorf("%s: the first sound comes after %v", f, at)
			}
			c.hangup()
		})
	}
}

func TestNoisyLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: "hello"})
		c.pass(3 * time.Second)
		noise := make([]int16, 8000*60) // about -29 dBFS
		for i := range noise {
			noise[i] = int16(i*7919%4001 - 2000)
		}
		c.Say(noise)
		c.pass(20 * time.Second)
		heard := c.words()
		c.hangup()
		if !strings.Contains(heard, "are you still there?") {
			t.Errorf("the caller heard %q", heard)
		}
	})
}

// TestRecognizerDropsDuringSpeech checks that the next recognizer receives the audio of the
// failed one.
func TestRecognizerDropsDuringSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeprovider.Typical()
		s.Fault = func(p fakeprovider.Provider, n int) fakeprovider.Fault {
			if p == fakeprovider.ASR && n == 0 {
				return fakeprovider.Drop // the voice fails after the second word
			}
			return fakeprovider.None
		}
		c := start(t, s, pipeline.SessionConfig{})
		c.pass(time.Second)
		c.say("what is your very first name")
		c.pass(6 * time.Second)
		got := c.words()
		if o := c.hangup(); got != "you said what is your very first name" {
			t.Errorf("heard %q, lines %q", got, lines(o))
		}
	})
}

// TestTurnWithoutTranscript checks that speech without a transcript is recorded as a failed turn.
func TestTurnWithoutTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeprovider.Typical()
		s.Fault = func(p fakeprovider.Provider, _ int) fakeprovider.Fault {
			if p == fakeprovider.ASR {
				return fakeprovider.Stall
			}
			return fakeprovider.None
		}
		c := start(t, s, pipeline.SessionConfig{})
		c.pass(time.Second)
		c.say("what is your name")
		c.pass(6 * time.Second)
		o := c.hangup()
		if len(o.Turns) != 1 || o.Turns[0].Ending != pipeline.Failed || o.Turns[0].Audible() {
			t.Errorf("turns %+v", o.Turns)
		}
	})
}

type pausing struct{ pause time.Duration }

func (p pausing) Reply(ctx context.Context, _ pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		if !yield(pipeline.Delta{Text: strings.Repeat("one two three four five. ", 6)}, nil) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.pause):
			yield(pipeline.Delta{Text: "end."}, nil)
		}
	}
}

// TestModelPauses checks that a pause of the model has no effect while queued speech is played,
// and that the agent apologizes after it.
func TestModelPauses(t *testing.T) {
	for pause, want := range map[time.Duration]string{5 * time.Second: "five. end.", time.Hour: "say it again?"} {
		synctest.Test(t, func(t *testing.T) {
			stage := pipetest.New(fakeprovider.Typical())
			stage.Clients.Models["fake"] = pausing{pause}
			c := talkOn(t, stage, pipeline.SessionConfig{Engines: pipetest.FakeEngines()})
			c.pass(3 * time.Second)
			c.say("count please")
			c.pass(20 * time.Second)
			heard := c.words()
			c.hangup()
			if !strings.Contains(heard, want) || strings.Count(heard, "five") != 6 {
				t.Errorf("a pause of %v: heard %q", pause, heard)
			}
		})
	}
}

// TestPhraseLanguage checks that the agent speaks its fixed phrases in the language of the call.
func TestPhraseLanguage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: "guten tag", Language: "de-AT"})
		o := c.wait()
		if got := strings.Join(lines(o), "\n"); !strings.Contains(got, "Sind Sie noch da?") || strings.Contains(got, "still there") {
			t.Errorf("lines %q", got)
		}
	})
}

func TestCleanLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeprovider.Typical()
		s.Reply = func([]fakeprovider.Message) string { return "a\x00b \x1b[31mred\n\u0085 end" }
		c := start(t, s, pipeline.SessionConfig{})
		c.pass(time.Second)
		c.say("hello there")
		c.pass(5 * time.Second)
		for _, l := range c.hangup().Lines {
			if i := slices.IndexFunc([]rune(l.Text), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }); i >= 0 {
				t.Errorf("line %q", l.Text)
			}
		}
	})
}

func talkOn(t *testing.T, stage *pipetest.Env, brief pipeline.SessionConfig) *call {
	t.Helper()
	return talkAt(t, 8000, stage, brief)
}

// talkAt is talkOn with a leg at the given rate in Hz.
func talkAt(t *testing.T, rate int, stage *pipetest.Env, brief pipeline.SessionConfig) *call {
	t.Helper()
	leg := mediatest.NewLeg(rate)
	return talkTo(t, leg, leg, stage, brief)
}

// talkTo is talkOn with the leg able, which wraps leg.
func talkTo(t *testing.T, leg *mediatest.Leg, able media.Leg, stage *pipetest.Env, brief pipeline.SessionConfig) *call {
	t.Helper()
	c := &call{Leg: leg, t: t, began: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		var err error
		if c.outcome, err = stage.Talk(context.Background(), able, brief); err != nil {
			t.Errorf("talk: %v", err)
		}
		if err := stage.Close(); err != nil {
			t.Errorf("close fakes: %v", err)
		}
	}()
	return c
}
