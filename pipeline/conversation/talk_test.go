package conversation_test

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
	"github.com/parley-voice/parley/pipeline/fakeprovider"
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

func start(t *testing.T, script fakeprovider.Script, brief pipeline.SessionConfig) *call {
	t.Helper()
	if brief.Engines.ASR.Provider == "" {
		brief.Engines = pipetest.FakeEngines()
	}
	return talkOn(t, pipetest.New(script), brief)
}

func (c *call) say(text string) {
	pcm, _ := tone.Encode(c.Rate(), text)
	c.Say(pcm)
	c.pass(time.Duration(len(pcm)) * time.Second / time.Duration(c.Rate()))
}

func (c *call) pass(d time.Duration) { <-time.After(d) }

func (c *call) hangup() pipeline.Outcome {
	_ = c.Hangup(media.RemoteHangup)
	return c.wait()
}

func (c *call) wait() pipeline.Outcome {
	<-c.done
	return c.outcome
}

// words returns what the caller heard so far, decoded from the sound.
func (c *call) words() string {
	var all []string
	for _, w := range c.timed() {
		all = append(all, w.Text)
	}
	return strings.Join(all, " ")
}

func (c *call) timed() []tone.Word {
	return tone.NewDecoder(c.Rate()).Decode(append(c.Output(), make([]int16, c.Rate()/10)...))
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
		c := start(t, fakeprovider.Typical(), pipeline.SessionConfig{Greeting: "hello this is parley"})
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
		// The partial text comes after 100 ms and starts the reply. Model and voice take 300 ms, which fits into the
		// wait of 400 ms. The voice waits for a whole clause. The words after the first take 50 ms.
		if d := o.Turns[1].Total(); d < 450*time.Millisecond || d > 495*time.Millisecond {
			t.Errorf("turn 1 took %v: %+v", d, o.Turns[1].Spans)
		}
	})
}

func TestWideband(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := talkAt(t, 16000, pipetest.New(fakeprovider.Typical()), pipeline.SessionConfig{Greeting: "hello", Engines: pipetest.FakeEngines()})
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
		t.Error("got llm_first_sentence_ms, want none")
	}
}
