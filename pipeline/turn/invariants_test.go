package turn

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A watch follows what a machine does, and says what it must not do.
type watch struct {
	policy     Policy
	armed      bool // a timer is set
	due        time.Duration
	left       bool
	voiced     bool // the caller's voice is known to be on
	greeting   bool // the answer is the greeting
	released   bool // the answer may be heard
	paused     bool
	speculated []string // normal text of the last one
	specs      int      // since the last commit
}

// before is told of an event before the machine is.
func (w *watch) before(e Event) {
	switch e.Kind {
	case Timer:
		w.armed = false
	case Voice:
		w.voiced = true
	case Silence:
		w.voiced = false
	case Audible:
		w.specs = 0
	default:
	}
}

// after is told of an action, and of who had the floor before it. It returns
// what is wrong with it; empty for nothing.
func (w *watch) after(a Action, floor State) string {
	wrong := ""
	switch a.Do {
	case SetTimer:
		w.armed, w.due = a.At > 0, a.At
	case Release:
		switch {
		case w.released:
			wrong = "the answer was released before"
		case w.voiced && !w.greeting && floor != Speaking:
			wrong = "the caller speaks"
		}
		w.released = true
	case Pause:
		w.paused = true
	case Resume:
		if !w.paused {
			wrong = "nothing was paused"
		}
		w.paused = false
	case Speculate:
		w.speculated = normal(a.Text)
		if w.specs++; w.specs > w.policy.Speculations {
			wrong = "too many"
		}
	case Commit:
		switch {
		case a.Text == "" && a.Keys == "" || a.Fragments < 1 || a.From > a.At:
			wrong = "nothing is answered"
		case a.Held && !slices.Equal(w.speculated, normal(a.Text)):
			wrong = "another text was begun: " + strings.Join(w.speculated, " ")
		}
		w.released, w.greeting, w.specs, w.paused = false, false, 0, false
	case Retract, Yield, Apologise, Nudge:
		w.released, w.greeting, w.specs, w.paused = false, false, 0, false
	case Finalize:
		w.voiced = w.voiced && a.Reason != "no_more_words" // a noise, then
	case Drop:
		w.voiced = false
	case Leave:
		w.left = true
	default:
	}
	return wrong
}

// TestInvariants throws anything at the machine: it must not panic, must hold
// at most one answer at a time and let it be heard once, and not over the
// caller's voice; it goes on only with what it paused, and must never leave a
// silent caller, or a pause, without a timer or a speech that is to come.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &watch{policy: DefaultPolicy(), greeting: rapid.Bool().Draw(t, "greeting")}
		m := New(w.policy, w.greeting)
		kinds := []Kind{Stirred, Calmed, Voice, Loud, Lull, Silence, Key, Heard, Judged, Deaf, Listens, Timer, Ready, Audible, Said, ReplyFail, Own, Hold, Floor}
		at := time.Duration(0)
		for _, a := range m.Start() {
			w.after(a, m.State())
		}
		for range rapid.IntRange(1, 80).Draw(t, "n") {
			at += time.Duration(rapid.IntRange(0, 1500).Draw(t, "later")) * ms
			e := Event{
				Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), At: at, From: max(0, at-180*ms), For: 160 * ms,
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
			case w.left || w.armed || s == Speaking || s == Held: // who holds it lets it go
			case e.Kind != Timer:
				t.Fatalf("%s after %+v and nothing would ever happen again", s, e)
			case s == Paused:
				t.Fatalf("paused after %+v for ever", e)
			}
		}
	})
}
