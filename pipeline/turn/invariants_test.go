package turn

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A watch follows the actions of a machine and checks them.
type watch struct {
	policy     Policy
	armed      bool // a timer is set
	due        time.Duration
	left       bool
	voiced     bool // the caller is speaking
	greeting   bool // the answer is the greeting
	released   bool // the answer may be played
	paused     bool
	speculated []string // normalized words of the last Speculate
	specs      int      // number of Speculates since the last commit
}

func (w *watch) before(e Event) {
	switch e.Kind {
	case Timer:
		w.armed = false
	case Voice:
		w.voiced = true
	case Silence:
		w.voiced = false
	case SpeechStart:
		w.specs = 0
	default:
	}
}

// after checks an action against the state before it. It returns what is wrong, or "".
func (w *watch) after(a Action, floor State) string {
	wrong := ""
	switch a.Do {
	case SetTimer:
		w.armed, w.due = a.At > 0, a.At
	case Release:
		switch {
		case w.released:
			wrong = "the answer is released already"
		case w.voiced && !w.greeting && floor != Speaking:
			wrong = "the caller speaks"
		}
		w.released = true
	case Pause:
		w.paused = true
	case Resume:
		if !w.paused {
			wrong = "the agent is not paused"
		}
		w.paused = false
	case Speculate:
		w.speculated = normal(a.Text)
		if w.specs++; w.specs > w.policy.Speculations {
			wrong = "more speculations than the policy allows"
		}
	case Commit:
		switch {
		case a.Text == "" && a.Keys == "" || a.Fragments < 1 || a.From > a.At:
			wrong = "the commit has no text"
		case a.Prepared && !slices.Equal(w.speculated, normal(a.Text)):
			wrong = "the prepared answer is for another text: " + strings.Join(w.speculated, " ")
		}
		w.released, w.greeting, w.specs, w.paused = false, false, 0, false
	case Retract, Yield, Apologize, Nudge:
		w.released, w.greeting, w.specs, w.paused = false, false, 0, false
	case Finalize:
		w.voiced = w.voiced && a.Reason != "no_more_words" // the sound was only noise
	case Drop:
		w.voiced = false
	case Leave:
		w.left = true
	default:
	}
	return wrong
}

// TestInvariants sends random events. The machine must not panic. It must prepare one answer at
// a time, release it once and not over the caller's voice, and resume only what it paused.
// While the caller is silent or the agent is paused, a timer must be set or speech must be due.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &watch{policy: DefaultPolicy(), greeting: rapid.Bool().Draw(t, "greeting")}
		m := New(w.policy, w.greeting)
		kinds := []Kind{SoundStart, SoundEnd, Voice, VoiceLength, Lull, Silence, Key, Typed, Transcript, Classified, RecognizerLost, RecognizerOpen, Timer, Ready, SpeechStart, SpeechEnd, ReplyFailed, OwnSpeech, Hold, Floor}
		at := time.Duration(0)
		for _, a := range m.Start() {
			w.after(a, m.State())
		}
		for range rapid.IntRange(1, 80).Draw(t, "n") {
			at += time.Duration(rapid.IntRange(0, 1500).Draw(t, "later")) * ms
			e := Event{
				Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), At: at, From: max(0, at-180*ms), Length: 160 * ms,
				Text:  rapid.SampledFrom([]string{"", "yes", "two words", Filler, Notice, Reply}).Draw(t, "text"),
				Final: rapid.Bool().Draw(t, "final"), Finalized: rapid.Bool().Draw(t, "finalized"),
				Unanswered: rapid.Bool().Draw(t, "unanswered"), Until: time.Duration(rapid.IntRange(0, 1).Draw(t, "until")) * max(0, at-200*ms),
			}
			floor := m.State()
			w.before(e)
			for _, a := range m.Step(e) {
				if wrong := w.after(a, floor); wrong != "" {
					t.Fatalf("%+v after %+v, %s: %s", a, e, floor, wrong)
				}
			}
			switch s := m.State(); {
			case s == Paused && w.due > at+w.policy.Wordless:
				t.Fatalf("paused after %+v until %v", e, w.due)
			case w.left || w.armed || s == Speaking || s == Held: // the next event comes from outside
			case e.Kind != Timer:
				t.Fatalf("%s after %+v without a timer", s, e)
			case s == Paused:
				t.Fatalf("paused after %+v without a timer", e)
			}
		}
	})
}
