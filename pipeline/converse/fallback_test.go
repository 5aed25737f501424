package converse_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// TestFallback: a call whose first providers are all down goes as if nothing
// were wrong.
func TestFallback(t *testing.T) {
	for _, fault := range []fake.Fault{fake.Refuse, fake.Busy} {
		synctest.Test(t, func(t *testing.T) {
			down := pipetest.New(fake.Script{Fault: func(fake.Provider, int) fake.Fault { return fault }})
			defer func() { _ = down.Close() }()
			stage := pipetest.New(fake.Typical())
			stage.Recognizers["down"], stage.Models["down"], stage.Voices["down"] = down.Recognizers["fake"], down.Models["fake"], down.Voices["fake"]
			e := pipeline.Engine{Provider: "down", Fallback: &pipeline.Engine{Provider: "fake"}}
			c := talkOn(t, stage, pipeline.Brief{Engines: pipeline.Engines{ASR: e, LLM: e, TTS: e}})
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
