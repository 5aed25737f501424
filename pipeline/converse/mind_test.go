package converse

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/listener"
	"github.com/parley-voice/parley/pipeline/turn"
)

// TestUnanswered: the caller's words up to 2 s are answered; of a result that
// goes on, the rest is new.
func TestUnanswered(t *testing.T) {
	zero := time.Unix(1000, 0)
	s := &talk{machine: turn.New(turn.DefaultPolicy(), false), brief: pipeline.Brief{AnsweredAt: zero}}
	for _, e := range []turn.Event{
		{Kind: turn.Voice, At: time.Second, From: time.Second},
		{Kind: turn.Silence, At: 2180 * time.Millisecond, From: 2 * time.Second},
		{Kind: turn.Heard, At: 2500 * time.Millisecond, From: time.Second, Text: "i came back", Final: true, Finalized: true},
	} {
		s.machine.Step(e)
	}
	if s.machine.Settled() != 2*time.Second {
		t.Fatalf("settled at %v", s.machine.Settled())
	}
	old, last := pipeline.Word{Text: "two", Start: 1500 * time.Millisecond, End: 1800 * time.Millisecond}, pipeline.Word{Text: "three", Start: 2500 * time.Millisecond, End: 2800 * time.Millisecond}
	for name, c := range map[string]struct {
		words []pipeline.Word
		text  string
		from  time.Duration
	}{
		"old and new":                        {[]pipeline.Word{old, last}, "three", 2500 * time.Millisecond},
		"new, in a stretch that began early": {[]pipeline.Word{last}, "as told", 2500 * time.Millisecond},
		"old":                                {[]pipeline.Word{old}, "as told", 1200 * time.Millisecond},
		"no words":                           {nil, "as told", 1200 * time.Millisecond},
	} {
		e := turn.Event{Text: "as told", From: 1200 * time.Millisecond}
		s.unanswered(&e, listener.Heard{Zero: zero, Result: pipeline.Result{Words: c.words}})
		if e.Text != c.text || e.From != c.from {
			t.Errorf("%s: %q from %v, want %q from %v", name, e.Text, e.From, c.text, c.from)
		}
	}
}

// ended is a leg that ended.
type ended struct {
	media.Leg
	cause media.Cause
}

func (l ended) Cause() media.Cause { return l.cause }

func TestEnding(t *testing.T) {
	for cause, want := range map[media.Cause]pipeline.Reason{
		media.RemoteHangup: pipeline.CallerHungUp, media.MediaTimeout: pipeline.NoMedia, media.Expired: pipeline.NoMedia,
		media.Transferred: pipeline.HandedOver, media.Failure: pipeline.AgentError, media.LocalHangup: pipeline.Stopped, "": pipeline.Stopped,
	} {
		if got := (&talk{leg: ended{cause: cause}}).ending(); got != want {
			t.Errorf("%q: %s, want %s", cause, got, want)
		}
	}
}
