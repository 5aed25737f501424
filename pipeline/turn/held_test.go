package turn

import (
	"slices"
	"testing"
)

func floor(e Event, text string) Event { e.Kind, e.Text = Floor, text; return e }

func TestHeld(t *testing.T) {
	for name, c := range map[string]struct {
		silent bool // the agent has no greeting
		events []Event
		want   []string
	}{
		"no speech before the floor": {
			events: []Event{speech(Ready, 100*ms, ""), voice(1000 * ms), silence(2000 * ms), final(2300*ms, "who is it"), end(20000 * ms)},
			want:   []string{"0 finalize silence"},
		},
		"a greeting that is ready": {
			events: []Event{speech(Ready, 100*ms, ""), floor(Event{At: 900 * ms}, Greet)},
			want:   []string{"0 release"},
		},
		"a greeting that is late": {
			events: []Event{floor(Event{At: 900 * ms}, Greet), speech(Ready, 1200*ms, "")},
			want:   []string{"0 release"},
		},
		"a greeting that failed": {
			events: []Event{{Kind: ReplyFailed, At: 100 * ms}, floor(Event{At: 900 * ms}, Greet)},
			want:   []string{"0 apologise reply_failed"},
		},
		"the hello is answered by the greeting": {
			events: []Event{
				speech(Ready, 100*ms, ""), voice(500 * ms), silence(900 * ms), floor(Event{At: 1250 * ms}, Greet), speech(SpeechStart, 1270*ms, Reply),
				said(1400*ms, 500*ms, "hello who is there please"), speech(SpeechEnd, 2500*ms, Reply), end(6000 * ms),
			},
			want: []string{"0 finalize silence", "0 release"},
		},
		"without a greeting the hello is answered": {
			silent: true,
			events: []Event{voice(500 * ms), silence(900 * ms), final(1200*ms, "Who is there?"), floor(Event{At: 1250 * ms}, Greet), end(3000 * ms)},
			want:   []string{"0 finalize silence", "1250 commit Who is there?"},
		},
		"without a greeting, the final is waited for": {
			silent: true,
			events: []Event{voice(500 * ms), silence(900 * ms), floor(Event{At: 1250 * ms}, Greet), final(1500*ms, "Who is there?"), end(3000 * ms)},
			want:   []string{"0 finalize silence", "1500 commit Who is there?"},
		},
		"without a greeting and a word, the idle ladder": {
			silent: true,
			events: []Event{floor(Event{At: 2500 * ms}, Greet), end(13000 * ms)},
			want:   []string{"0 nudge idle"},
		},
		"a machine is answered, not greeted": {
			events: []Event{
				speech(Ready, 100*ms, ""), voice(500 * ms), silence(3000 * ms), final(3200*ms, "Please say your name."),
				floor(Event{At: 4000 * ms}, ""), end(5000 * ms),
			},
			want: []string{"0 finalize silence", "4000 commit Please say your name."},
		},
		"speech to a machine stops, and the machine is answered later": {
			events: []Event{
				speech(Ready, 100*ms, ""), voice(500 * ms), silence(1000 * ms), floor(Event{At: 1400 * ms}, Greet), speech(SpeechStart, 1420*ms, Reply),
				final(1500*ms, ""), voice(1700 * ms),
				{Kind: Hold, At: 2000 * ms},
				silence(4000 * ms), said(4300*ms, 1700*ms, "Please say your name."),
				floor(Event{At: 5000 * ms}, ""), end(5100 * ms),
			},
			want: []string{"0 finalize silence", "0 release", "0 duck sound", "0 yield machine_answered", "0 finalize silence", "5000 commit Please say your name."},
		},
		"an answer in preparation is retracted": {
			silent: true,
			events: []Event{
				voice(500 * ms), silence(900 * ms), final(1200*ms, "Who is there?"), floor(Event{At: 1250 * ms}, Greet),
				{Kind: Hold, At: 1300 * ms},
				floor(Event{At: 2000 * ms}, ""), end(2100 * ms),
			},
			want: []string{"0 finalize silence", "1250 commit Who is there?", "0 retract machine_answered", "2000 commit Who is there?"},
		},
		"keys are kept": {
			silent: true,
			events: []Event{{Kind: Key, At: 500 * ms, Text: "1"}, {Kind: Key, At: 600 * ms, Text: "#"}, floor(Event{At: 2000 * ms}, Greet), end(2100 * ms)},
			want:   []string{"2000 commit"},
		},
		"a second floor does nothing": {
			events: []Event{speech(Ready, 100*ms, ""), floor(Event{At: 900 * ms}, Greet), floor(Event{At: 1000 * ms}, Greet)},
			want:   []string{"0 release"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := DefaultPolicy()
			p.Held = true
			if got := playAll(New(p, !c.silent), c.events...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
