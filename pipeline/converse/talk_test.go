package converse_test

import (
	"encoding/json"
	"math"
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

// a call is one conversation on a leg in memory.
type call struct {
	*mediatest.Leg
	t       *testing.T
	began   time.Time
	outcome pipeline.Outcome
	done    chan struct{}
}

// start lets an agent talk, in a bubble.
func start(t *testing.T, script fake.Script, brief pipeline.Brief) *call {
	t.Helper()
	if brief.Engines == (pipeline.Engines{}) {
		brief.Engines = pipetest.Fake()
	}
	return talkOn(t, pipetest.New(script), brief)
}

// say speaks now and returns when it was said.
func (c *call) say(text string) {
	pcm, _ := tone.Say(c.Rate(), text)
	c.Say(pcm)
	c.pass(time.Duration(len(pcm)) * time.Second / time.Duration(c.Rate()))
}

// pass lets time pass.
func (c *call) pass(d time.Duration) { <-time.After(d) }

// hangup ends the call from the caller's side and returns its outcome.
func (c *call) hangup() pipeline.Outcome {
	_ = c.Hangup(media.RemoteHangup)
	return c.wait()
}

func (c *call) wait() pipeline.Outcome {
	<-c.done
	return c.outcome
}

// words is what the caller heard so far, from its sound alone.
func (c *call) words() string {
	var all []string
	for _, w := range c.timed() {
		all = append(all, w.Text)
	}
	return strings.Join(all, " ")
}

func (c *call) timed() []tone.Word {
	return tone.NewHearer(c.Rate()).Hear(append(c.Heard(), make([]int16, c.Rate()/10)...))
}

func lines(o pipeline.Outcome) []string {
	var all []string
	for _, l := range o.Lines {
		all = append(all, string(l.Role)+": "+l.Text)
	}
	return all
}

func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, fake.Typical(), pipeline.Brief{Greeting: "hello this is parley"})
		c.pass(2500 * time.Millisecond)
		c.say("i have a question")
		c.pass(4 * time.Second)
		c.say("thank you")
		c.pass(3 * time.Second)
		got := c.words()
		o := c.hangup()
		if want := "hello this is parley you said i have a question you said thank you"; got != want {
			t.Errorf("the caller heard %q, want %q", got, want)
		}
		want := []string{
			"agent: hello this is parley", "caller: i have a question", "agent: you said i have a question",
			"caller: thank you", "agent: you said thank you",
		}
		if !slices.Equal(lines(o), want) {
			t.Errorf("lines %q", lines(o))
		}
		if o.Reason != pipeline.CallerHungUp {
			t.Errorf("reason %q", o.Reason)
		}
		if len(o.Turns) != 3 {
			t.Fatalf("turns %+v", o.Turns)
		}
		for i, turn := range o.Turns {
			checkTurn(t, turn, i)
		}
		// The interim text is there after 100 ms and asked about at once; the model
		// and the voice take 300 ms, in which the patience of 400 ms passes. The
		// voice waits for a clause, whose other words take the model 50 ms.
		if d := o.Turns[1].Total(); d < 450*time.Millisecond || d > 495*time.Millisecond {
			t.Errorf("turn 1 took %v: %+v", d, o.Turns[1].Spans)
		}
	})
}

// TestWideband converses on a leg of 16 kHz.
func TestWideband(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := talkAt(t, 16000, pipetest.New(fake.Typical()), pipeline.Brief{Greeting: "hello", Engines: pipetest.Fake()})
		c.pass(1500 * time.Millisecond)
		c.say("i hear you well")
		c.pass(4 * time.Second)
		got := c.words()
		o := c.hangup()
		if want := "hello you said i hear you well"; got != want {
			t.Errorf("the caller heard %q, want %q", got, want)
		}
		if want := []string{"agent: hello", "caller: i hear you well", "agent: you said i hear you well"}; !slices.Equal(lines(o), want) {
			t.Errorf("lines %q", lines(o))
		}
	})
}

func checkTurn(t *testing.T, turn pipeline.Turn, number int) {
	t.Helper()
	if turn.Number != number || turn.Ending != pipeline.Answered {
		t.Errorf("turn %d: number %d, ending %q", number, turn.Number, turn.Ending)
	}
	b, err := json.Marshal(turn)
	if err != nil {
		t.Fatal(err)
	}
	var item struct {
		Metrics map[string]any `json:"metrics"`
	}
	if err := json.Unmarshal(b, &item); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for k, v := range item.Metrics {
		if ms, ok := v.(float64); ok && strings.HasSuffix(k, "_ms") && k != "turn_ms" {
			sum += ms
		}
	}
	if total, ok := item.Metrics["turn_ms"].(float64); !ok || math.Abs(total-sum) > 1 {
		t.Errorf("turn %d: phases sum to %v, turn_ms is %v: %s", number, sum, item.Metrics["turn_ms"], b)
	}
	if _, has := item.Metrics["llm_first_sentence_ms"]; has {
		t.Error("llm_first_sentence_ms is there")
	}
}
