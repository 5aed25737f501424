package conversation_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// TestEarlyEnd checks replies that the model ends early: the caller hears the words so far once
// and no apology, and the history has them.
func TestEarlyEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		finish       fakeprovider.Finish
		reply, heard string
		ending       pipeline.Ending
	}{
		"limit":              {fakeprovider.FinishLength, "the price is forty", "the price is forty", pipeline.Answered},
		"filter":             {fakeprovider.FinishFilter, "the price is forty", "the price is forty", pipeline.Answered},
		"refusal":            {fakeprovider.FinishRefusal, "i must not say that", "i must not say that", pipeline.Answered},
		"limit without text": {fakeprovider.FinishLength, "", "sorry, i did not get that. could you say it again?", pipeline.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := fakeprovider.Typical()
				script.Reply = func([]fakeprovider.Message) string { return tt.reply }
				var last atomic.Pointer[[]fakeprovider.Message]
				script.Finish = func(m []fakeprovider.Message) fakeprovider.Finish { last.Store(&m); return tt.finish }
				c := start(t, script, pipeline.SessionConfig{})
				c.pass(5 * time.Second) // wait until the phrases are in the cache
				c.say("what is the price")
				c.pass(6 * time.Second)
				heard := c.words()
				c.say("and now")
				c.pass(3 * time.Second)
				o := c.hangup()
				if heard != tt.heard || o.Turns[0].Ending != tt.ending {
					t.Errorf("heard %q, turn %+v", heard, o.Turns[0])
				}
				if m := *last.Load(); tt.reply != "" && (len(m) != 4 || m[2].Content != tt.reply) {
					t.Errorf("history %+v", m)
				}
			})
		})
	}
}

// TestSignedToolCall checks that the provider's data of a tool call returns with the history.
// The fake provider refuses a history without it.
func TestSignedToolCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engines := pipetest.FakeEngines()
		engines.LLM.Model = "gemini-4"
		c := start(t, calls("weather", `{}`, ""), pipeline.SessionConfig{Engines: engines, Tools: []pipeline.Function{newWeather(0)}})
		c.pass(500 * time.Millisecond)
		c.say("what is the weather")
		c.pass(4 * time.Second)
		heard := c.words()
		if o := c.hangup(); heard != "it is sunny" {
			t.Errorf("heard %q, turns %+v", heard, o.Turns)
		}
	})
}
