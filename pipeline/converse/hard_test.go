package converse_test

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
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// TestLateFinal: however late the final text comes, it is answered once.
func TestLateFinal(t *testing.T) {
	for _, lag := range []int{0, 150, 600, 900, 1200, 1900} {
		synctest.Test(t, func(t *testing.T) {
			s := fake.Typical()
			s.FinalLag = time.Duration(lag) * time.Millisecond
			c := start(t, s, pipeline.Brief{})
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

// TestTwoFragments: a second stretch of speech before the first one's final.
func TestTwoFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.Typical()
		s.FinalLag = 600 * time.Millisecond
		c := start(t, s, pipeline.Brief{})
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

// firstSound is when the caller first heard anything.
func firstSound(pcm []int16) time.Duration {
	for i := 0; i+160 <= len(pcm); i += 160 {
		if tone.Level(pcm[i:i+160]) > -45 {
			return time.Duration(i/160) * 20 * time.Millisecond
		}
	}
	return -1
}

// TestGreetingWithABrokenVoice: nobody picks up to silence.
func TestGreetingWithABrokenVoice(t *testing.T) {
	for _, f := range []fake.Fault{fake.Hang, fake.Stall, fake.Refuse, fake.Drop, fake.Garble} {
		synctest.Test(t, func(t *testing.T) {
			s := fake.Typical()
			s.Fault = func(p fake.Provider, _ int) fake.Fault {
				if p == fake.TTS {
					return f
				}
				return fake.None
			}
			c := start(t, s, pipeline.Brief{Greeting: "hello this is parley"})
			c.pass(8 * time.Second)
			if at := firstSound(c.Heard()); at < 0 || at > 2500*time.Millisecond {
				t.Errorf("%s: the first sound comes after %v", f, at)
			}
			c.hangup()
		})
	}
}

// TestNoisyLine: noise that never pauses is no speech that never ends.
func TestNoisyLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fake.Typical(), pipeline.Brief{Greeting: "hello"})
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

// TestRecognizerDropsInMidSpeech: what the one that broke had heard is told to
// the next.
func TestRecognizerDropsInMidSpeech(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.Typical()
		s.Fault = func(p fake.Provider, n int) fake.Fault {
			if p == fake.ASR && n == 0 {
				return fake.Drop // after the second word
			}
			return fake.None
		}
		c := start(t, s, pipeline.Brief{})
		c.pass(time.Second)
		c.say("what is your very first name")
		c.pass(6 * time.Second)
		got := c.words()
		if o := c.hangup(); got != "you said what is your very first name" {
			t.Errorf("heard %q, lines %q", got, lines(o))
		}
	})
}

// TestSilentRecognizerHasItsTurn: a turn that nothing was understood of is one.
func TestSilentRecognizerHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.Typical()
		s.Fault = func(p fake.Provider, _ int) fake.Fault {
			if p == fake.ASR {
				return fake.Stall
			}
			return fake.None
		}
		c := start(t, s, pipeline.Brief{})
		c.pass(time.Second)
		c.say("what is your name")
		c.pass(6 * time.Second)
		o := c.hangup()
		if len(o.Turns) != 1 || o.Turns[0].Ending != pipeline.Failed || o.Turns[0].Audible() {
			t.Errorf("turns %+v", o.Turns)
		}
	})
}

// pausing is a model that says a lot, thinks, and says the rest.
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

// TestModelPauses: an answer that is still being heard is not a stalled one, and
// one that is not is excused.
func TestModelPauses(t *testing.T) {
	for pause, want := range map[time.Duration]string{5 * time.Second: "five. end.", time.Hour: "say it again?"} {
		synctest.Test(t, func(t *testing.T) {
			stage := pipetest.New(fake.Typical())
			stage.Models["fake"] = pausing{pause}
			c := talkOn(t, stage, pipeline.Brief{Engines: pipetest.Fake()})
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

// TestCannedLinesSpeakTheLanguage: a caller is not excused in a language that
// the voice does not speak.
func TestCannedLinesSpeakTheLanguage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fake.Typical(), pipeline.Brief{Greeting: "guten tag", Language: "de-AT"})
		o := c.wait()
		if got := strings.Join(lines(o), "\n"); !strings.Contains(got, "Sind Sie noch da?") || strings.Contains(got, "still there") {
			t.Errorf("lines %q", got)
		}
	})
}

func TestLinesAreClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.Typical()
		s.Reply = func([]fake.Message) string { return "a\x00b \x1b[31mred\n\u0085 end" }
		c := start(t, s, pipeline.Brief{})
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

// talkOn lets the agent of a stage talk.
func talkOn(t *testing.T, stage *pipetest.Stage, brief pipeline.Brief) *call {
	t.Helper()
	return talkAt(t, 8000, stage, brief)
}

// talkAt is talkOn with a leg at rate (Hz).
func talkAt(t *testing.T, rate int, stage *pipetest.Stage, brief pipeline.Brief) *call {
	t.Helper()
	leg := mediatest.NewLeg(rate)
	return talkTo(t, leg, leg, stage, brief)
}

// talkTo is talkOn with a leg that leg is behind.
func talkTo(t *testing.T, leg *mediatest.Leg, able media.Leg, stage *pipetest.Stage, brief pipeline.Brief) *call {
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
