package provider

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A providerStub is a recognizer, a model and a voice that work or fail, and count their requests.
type providerStub struct {
	err   error
	asked atomic.Int64
}

func (s *providerStub) Recognize(context.Context, pipeline.Stream) (pipeline.Recognition, error) {
	s.asked.Add(1)
	return quiet{}, s.err
}

func (s *providerStub) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	s.asked.Add(1)
	return func(yield func(pipeline.Delta, error) bool) { yield(pipeline.Delta{Text: "OK"}, s.err) }
}

func (s *providerStub) Open(context.Context, pipeline.Style) (pipeline.Synthesis, error) {
	s.asked.Add(1)
	return word{}, s.err
}

type quiet struct{ pipeline.Recognition }

func (quiet) WriteFrame(media.Frame) error    { return nil }
func (quiet) Finalize() error                 { return nil }
func (quiet) Results() <-chan pipeline.Result { return nil }
func (quiet) Close() error                    { return nil }

type word struct{}

func (word) Write(string) error { return nil }
func (word) Flush() error       { return nil }
func (word) Close() error       { return nil }
func (word) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) { yield(pipeline.Speech{PCM: make([]int16, 80)}, nil) }
}

// TestChecker checks that engines are unusable while their breaker is open or after a
// failed probe, unless the fallback works. The first response closes the breaker, and no
// probe is sent early.
func TestChecker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := &providerStub{}, &providerStub{}
		g := &Guards{}
		c := &Checker{
			Guards: g, Clients: &Clients{
				Recognizers: map[string]pipeline.Recognizer{"good": good}, Voices: map[string]pipeline.Voice{"good": good},
				Models: map[string]pipeline.Model{"good": good, "bad": bad},
			},
		}
		ok, down := pipeline.Engine{Provider: "good"}, errors.New("down")
		e := pipeline.Engines{ASR: ok, LLM: pipeline.Engine{Provider: "bad"}, TTS: ok}
		usable := func(what string, want bool) {
			t.Helper()
			if err := c.Usable(e); (err == nil) != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		check := func(all bool, asks int64) {
			t.Helper()
			before := bad.asked.Load()
			if c.Check(t.Context(), e, all); bad.asked.Load() != before+asks {
				t.Errorf("got %d requests, want %d", bad.asked.Load()-before, asks)
			}
		}
		usable("no probe was sent", true)
		if c.Verified(e) {
			t.Error("verified before the first probe")
		}
		check(false, 0)
		check(true, 1)
		if good.asked.Load() != 2 || !c.Verified(e) {
			t.Errorf("got %d requests to the working provider, verified %v", good.asked.Load(), c.Verified(e))
		}
		bad.err = down
		for range maxFailures {
			v, err := g.of("llm", "bad").begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v.finish(down)
		}
		usable("its breaker is open", false)
		check(true, 0) // no probe during the pause
		<-time.After(firstPause)
		check(false, 1)
		usable("a probe failed", false)
		check(false, 0)
		e.LLM.Fallback = &ok
		usable("its fallback works", true)
		e.LLM.Fallback = nil
		bad.err = nil
		<-time.After(longPause)
		check(false, 1)
		usable("it answered", true)
		<-time.After(checkFresh + time.Second)
		if c.Verified(e) {
			t.Error("verified by an old result")
		}
		// A rejection opens no breaker, but the engine is unusable.
		bad.err = &pipeline.RefusedError{Status: 404}
		check(true, 1)
		usable("its model is unknown", false)
		check(true, 0)
		<-time.After(checkRetry)
		bad.err = nil
		check(false, 1)
		usable("its model is there", true)
	})
}

// TestChain checks that each fallback of a chain serves when all before it fail.
func TestChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for good := range 3 {
			stubs, g := map[string]*providerStub{}, &Guards{}
			recognizers, models, voices := map[string]pipeline.Recognizer{}, map[string]pipeline.Model{}, map[string]pipeline.Voice{}
			var e *pipeline.Engine
			for n := 2; n >= 0; n-- {
				name, stub := string(rune('a'+n)), &providerStub{err: errors.New("down")}
				if n == good {
					stub.err = nil
				}
				stubs[name], recognizers[name], models[name], voices[name] = stub, stub, stub, stub
				e = &pipeline.Engine{Provider: name, Fallback: e}
			}
			rec, err := g.Recognizer(&Clients{Recognizers: recognizers}, *e, nil).Recognize(t.Context(), pipeline.Stream{Rate: telephone})
			if err != nil {
				t.Fatalf("recognizer, %d works: %v", good, err)
			}
			_ = rec.Close()
			for _, err := range g.Model(&Clients{Models: models}, *e, nil).Reply(t.Context(), pipeline.Prompt{}) {
				if err != nil {
					t.Errorf("model, %d works: %v", good, err)
				}
			}
			sp, err := g.Voice(&Clients{Voices: voices}, *e, nil).Open(t.Context(), pipeline.Style{Rate: telephone})
			if err != nil {
				t.Fatalf("voice, %d works: %v", good, err)
			}
			_ = sp.Close()
			if n := stubs[string(rune('a'+good))].asked.Load(); n != 3 {
				t.Errorf("%d of 3 requests went to the working provider %d", n, good)
			}
		}
	})
}
