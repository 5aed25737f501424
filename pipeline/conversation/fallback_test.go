package conversation_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

func TestFallback(t *testing.T) {
	for _, fault := range []fakeprovider.Fault{fakeprovider.Refuse, fakeprovider.Busy} {
		synctest.Test(t, func(t *testing.T) {
			down := pipetest.New(fakeprovider.Script{Fault: func(fakeprovider.Provider, int) fakeprovider.Fault { return fault }})
			defer func() { _ = down.Close() }()
			stage := pipetest.New(fakeprovider.Typical())
			stage.Clients.Recognizers["down"], stage.Clients.Models["down"], stage.Clients.Voices["down"] = down.Clients.Recognizers["fake"], down.Clients.Models["fake"], down.Clients.Voices["fake"]
			e := pipeline.Engine{Provider: "down", Fallback: &pipeline.Engine{Provider: "fake"}}
			c := talkOn(t, stage, pipeline.SessionConfig{Engines: pipeline.Engines{ASR: e, LLM: e, TTS: e}})
			c.pass(2 * time.Second)
			c.say("what is your name")
			c.pass(4 * time.Second)
			heard := c.words()
			if o := c.hangup(); heard != "you said what is your name" || o.Reason != pipeline.CallerHungUp {
				t.Errorf("%s: heard %q, reason %q: %v", fault, heard, o.Reason, o.Err)
			}
		})
	}
}
