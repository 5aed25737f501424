package answering

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
)

const ms = time.Millisecond

// play sends events and due timers to a monitor and returns its commands.
func play(w *Monitor, events ...any) (orders []Command) {
	take := func(o []Command) { orders = append(orders, o...) }
	take(w.Step(amd.Event{Kind: amd.Timer}))
	timers := func(upTo time.Duration) {
		for due := w.Due(); due > 0 && due <= upTo; due = w.Due() {
			take(w.Step(amd.Event{Kind: amd.Timer, At: due}))
		}
	}
	for _, e := range events {
		switch e := e.(type) {
		case amd.Event:
			timers(e.At)
			take(w.Step(e))
		case words:
			timers(e.at)
			take(w.OnTranscript(e.at, e.text, true))
		case time.Duration: // the agent's turn was played to the end
			timers(e)
			w.OnAgentEnd(e)
		case begins:
			timers(time.Duration(e))
			w.OnAgentStart(time.Duration(e))
		}
	}
	timers(3 * time.Minute)
	return orders
}

type words struct {
	at   time.Duration
	text string
}

// begins is the time of the agent's first sound.
type begins time.Duration

func voice(at time.Duration) amd.Event { return amd.Event{Kind: amd.Voice, At: at + 60*ms, From: at} }

func silence(at time.Duration) amd.Event {
	return amd.Event{Kind: amd.Silence, At: at + 180*ms, From: at}
}

func beep(at time.Duration) amd.Event {
	return amd.Event{Kind: amd.Tone, Signal: amd.Beep, At: at + 40*ms, From: at}
}

func TestWatch(t *testing.T) {
	leave := func(why pipeline.Reason) Command { return Command{Do: Leave, Reason: why} }
	hello := []any{voice(500 * ms), silence(1000 * ms)}
	machine := []any{voice(500 * ms), words{2 * time.Second, "leave a message"}, silence(3 * time.Second), beep(4 * time.Second)}
	long := []any{voice(500 * ms), words{2 * time.Second, "northern tools good morning"}, silence(3 * time.Second)}
	reception := []any{voice(500 * ms), words{1500 * ms, "good morning you have reached"}, words{3 * time.Second, "northern tools how may i help"}, silence(3 * time.Second)}
	for name, c := range map[string]struct {
		policy pipeline.Voicemail
		asks   bool
		events []any
		want   []Command
	}{
		"nobody":                        {pipeline.VoicemailHangup, true, nil, []Command{{Do: Greet}}},
		"a person":                      {pipeline.VoicemailHangup, true, hello, []Command{{Do: Greet}}},
		"a person, long":                {pipeline.VoicemailHangup, false, long, []Command{{Do: Greet}}},
		"a person, long; ask":           {pipeline.VoicemailContinue, true, long, []Command{{Do: Ask, Text: "northern tools good morning"}, {Do: Greet}}},
		"a person, long; prepare":       {pipeline.VoicemailLeave, false, long, []Command{{Do: Prepare}, {Do: Greet}}},
		"a reception":                   {pipeline.VoicemailHangup, true, reception, []Command{{Do: Greet}}},
		"a machine's first words":       {pipeline.VoicemailLeave, true, []any{voice(500 * ms), words{1200 * ms, "your call"}, beep(2 * time.Second)}, []Command{{Do: Prepare}, {Do: Message}}},
		"hang up":                       {pipeline.VoicemailHangup, false, machine, []Command{leave(pipeline.VoicemailReached)}},
		"message after the beep":        {pipeline.VoicemailLeave, false, machine, []Command{{Do: Prepare}, {Do: Message}}},
		"talk to a machine":             {pipeline.VoicemailContinue, false, machine, []Command{{Do: Answer}}},
		"a second beep is of no use":    {pipeline.VoicemailLeave, false, append(slices.Clone(machine), beep(8*time.Second)), []Command{{Do: Prepare}, {Do: Message}}},
		"no beep, and then one":         {pipeline.VoicemailLeave, false, append(slices.Clone(machine[:3]), beep(6*time.Second), beep(9*time.Second)), []Command{{Do: Prepare}, {Do: Message}, {Do: Message}}},
		"unsure: hang up at its end":    {pipeline.VoicemailHangup, false, []any{voice(500 * ms), silence(8 * time.Second)}, []Command{leave(pipeline.VoicemailReached)}},
		"menu":                          {pipeline.VoicemailLeave, false, []any{voice(500 * ms), words{2 * time.Second, "press one"}}, []Command{leave(pipeline.IVRReached)}},
		"menu that goes on and on":      {pipeline.VoicemailContinue, false, []any{voice(500 * ms), words{2 * time.Second, "press one"}}, []Command{{Do: Answer}}},
		"screening":                     {pipeline.VoicemailHangup, false, []any{voice(500 * ms), words{2 * time.Second, "state your name"}, silence(3 * time.Second)}, []Command{{Do: Answer}}},
		"fax":                           {pipeline.VoicemailContinue, false, []any{amd.Event{Kind: amd.Tone, Signal: amd.Called, At: time.Second}}, []Command{leave(pipeline.AgentHungUp)}},
		"a dead number":                 {pipeline.VoicemailContinue, false, []any{amd.Event{Kind: amd.Tone, Signal: amd.Special, At: time.Second}}, []Command{leave(pipeline.AgentHungUp)}},
		"a machine that paused":         {pipeline.VoicemailLeave, false, append(slices.Clone(hello), voice(1500*ms), words{3 * time.Second, "leave a message"}, silence(4*time.Second)), []Command{{Do: Greet}, {Do: Prepare}, {Do: Hold}, {Do: Message}}},
		"a machine that talks over us":  {pipeline.VoicemailHangup, false, append(slices.Clone(hello), begins(1400*ms), voice(1500*ms), 3*time.Second, words{3100 * ms, "leave a message"}), []Command{{Do: Greet}, leave(pipeline.VoicemailReached)}},
		"a person answers":              {pipeline.VoicemailHangup, false, append(slices.Clone(hello), 3*time.Second, voice(3200*ms), words{5 * time.Second, "he is not available"}), []Command{{Do: Greet}}},
		"a person answers a bit early":  {pipeline.VoicemailHangup, false, append(slices.Clone(hello), voice(2700*ms), 3*time.Second, words{5 * time.Second, "he is not available"}), []Command{{Do: Greet}}},
		"a person cuts in":              {pipeline.VoicemailHangup, false, append(slices.Clone(hello), begins(1400*ms), voice(3000*ms), words{4500 * ms, "he is not available can i take a message"}), []Command{{Do: Greet}}},
		"a person cuts in, and answers": {pipeline.VoicemailHangup, false, append(slices.Clone(hello), begins(1400*ms), voice(3000*ms), 3300*ms, words{4500 * ms, "can i take a message"}), []Command{{Do: Greet}}},
		"nobody spoke, then a machine":  {pipeline.VoicemailHangup, false, []any{begins(1600 * ms), voice(3000 * ms), words{4500 * ms, "leave a message"}}, []Command{{Do: Greet}, leave(pipeline.VoicemailReached)}},
		"a beep behind a person":        {pipeline.VoicemailHangup, false, append(slices.Clone(hello), begins(1400*ms), 4*time.Second, voice(4300*ms), silence(6500*ms), beep(9*time.Second)), []Command{{Do: Greet}}},
		"a beep before an answer":       {pipeline.VoicemailHangup, false, append(slices.Clone(hello), begins(1400*ms), voice(1700*ms), silence(2500*ms), beep(4*time.Second)), []Command{{Do: Greet}, leave(pipeline.VoicemailReached)}},
		"a beep after two answers":      {pipeline.VoicemailHangup, false, append(slices.Clone(hello), 3*time.Second, 6*time.Second, beep(9*time.Second)), []Command{{Do: Greet}}},
		"a beep after one":              {pipeline.VoicemailHangup, false, append(slices.Clone(hello), 3*time.Second, beep(9*time.Second)), []Command{{Do: Greet}, leave(pipeline.VoicemailReached)}},
		"a beep much later":             {pipeline.VoicemailHangup, false, append(slices.Clone(hello), 3*time.Second, beep(21*time.Second)), []Command{{Do: Greet}}},
		"an undecided opinion":          {pipeline.VoicemailHangup, true, []any{amd.Event{Kind: amd.Opinion, At: time.Second}}, []Command{{Do: Greet}}},
		"an opinion against a greeting": {pipeline.VoicemailLeave, true, append(slices.Clone(long), amd.Event{Kind: amd.Opinion, At: 4 * time.Second, Party: amd.Voicemail, Confidence: opinionConfidence}), []Command{{Do: Prepare}, {Do: Ask, Text: "northern tools good morning"}, {Do: Greet}, {Do: Hold}, {Do: Message}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := play(New(c.policy, c.asks), c.events...); !slices.Equal(got, c.want) {
				t.Errorf("ordered %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTake(t *testing.T) {
	w := New(pipeline.VoicemailHangup, false)
	w.OnTranscript(time.Second, "hel", false)
	w.OnTranscript(time.Second, "hello", true)
	if got := w.Take(); got != "hello" {
		t.Errorf("took %q", got)
	}
	w.OnTranscript(2*time.Second, "who is it", false)
	if got := w.Take() + w.Take(); got != "who is it" {
		t.Errorf("then took %q", got)
	}
}

// TestAnything checks, for random events, that the agent may finally speak unless it hung up,
// that permission is given only once, and that no command follows the end.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]pipeline.Voicemail{pipeline.VoicemailHangup, pipeline.VoicemailLeave, pipeline.VoicemailContinue}).Draw(t, "policy")
		var events []any
		at := time.Duration(0)
		for range rapid.IntRange(0, 25).Draw(t, "events") {
			at += time.Duration(rapid.IntRange(0, 4000).Draw(t, "after")) * ms
			e := amd.Event{Kind: amd.Kind(rapid.IntRange(0, 5).Draw(t, "kind")), At: at, From: max(0, at-100*ms)}
			e.Signal, e.Party = amd.Signal(rapid.IntRange(0, 6).Draw(t, "signal")), amd.Party(rapid.IntRange(0, 5).Draw(t, "party"))
			e.Confidence = rapid.Float64Range(0, 1).Draw(t, "confidence")
			switch text := rapid.SampledFrom([]string{"", "hello", "press one", "after the tone", "state your name"}).Draw(t, "text"); {
			case rapid.IntRange(0, 5).Draw(t, "said") == 0:
				events = append(events, at)
			case e.Kind == amd.Transcript:
				events = append(events, words{at, text})
			default:
				events = append(events, e)
			}
		}
		free, over := false, false
		for _, o := range play(New(policy, rapid.Bool().Draw(t, "asks")), events...) {
			if over {
				t.Fatalf("%+v after the end", o)
			}
			switch o.Do {
			case Greet, Answer, Message:
				free = true
			case Hold:
				if !free {
					t.Fatal("held twice")
				}
				free = false
			case Leave:
				over = true
			case Prepare, Ask:
			}
		}
		if !free && !over {
			t.Fatalf("the agent is silent for ever after %+v", events)
		}
	})
}

// says is a model that answers with the text. If the text is empty, the model fails.
type says string

func (s says) Reply(context.Context, pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		if s == "" {
			yield(pipeline.Delta{}, errors.New("no"))
			return
		}
		for _, part := range strings.SplitAfter(string(s), " ") {
			if !yield(pipeline.Delta{Text: part}, nil) {
				return
			}
		}
	}
}

func TestOpinion(t *testing.T) {
	for said, want := range map[says]amd.Party{
		"human": amd.Human, " Voicemail. ": amd.Voicemail, "It is an IVR": amd.IVR, "screening": amd.Screening, "unknown": amd.Unknown, "who knows": amd.Unknown, "": amd.Unknown,
		says(strings.Repeat("hm ", 1000)) + "human": amd.Unknown,
	} {
		e := Opinion(t.Context(), said, "", "hello")
		if e.Party != want || e.Confidence > opinionConfidence || (e.Confidence > 0) != (want != amd.Unknown) {
			t.Errorf("%.20q: %+v, want %v", said, e, want)
		}
	}
}

func TestCompose(t *testing.T) {
	if text, err := Compose(t.Context(), says("call me "), "", ""); text != "call me" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := Compose(t.Context(), says(""), "", ""); text != "" || err == nil {
		t.Errorf("%q, %v", text, err)
	}
	if text, _ := Compose(t.Context(), says(strings.Repeat("hm ", 10000)), "", ""); len(text) > maxMessage+3 {
		t.Errorf("%d bytes", len(text))
	}
}
