package turn

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/eot"
)

// A State is who has the floor.
type State string

// States.
const (
	Listening State = "listening" // nobody speaks
	Hearing   State = "hearing"   // the caller speaks
	Closing   State = "closing"   // the caller fell silent; has the turn ended?
	Thinking  State = "thinking"  // an answer is being made, nothing is audible yet
	Speaking  State = "speaking"  // the agent speaks
)

// A Machine holds the turn of one call.
type Machine struct {
	policy Policy
	state  State

	// What the caller is saying.
	voiced   bool          // right now
	loud     time.Duration // voiced sound since that began
	lastEnd  time.Duration // the last voiced sample
	text     []string      // final stretches of this turn
	partial  string        // what may still change
	usable   time.Duration // when text became what it is
	asked    int           // Finalizes that are not answered
	settled  time.Duration // what the caller said before it was answered already
	hearFrom time.Duration // when speech began, or words last came
	closing  time.Duration // from when an answer to Finalize is waited for

	// What the agent is answering.
	answering string        // the caller's text; empty for a speech of the agent's own
	fragments int           // commits that were retracted before this one
	commit    time.Duration // when the answer was asked for
	pending   bool          // the answer is not audible yet
	filled    bool          // a filler was said for it
	greeting  bool          // the agent's first words are not over

	idleAt   time.Duration // when both sides have been silent for too long
	nudges   int
	failures int
}

// New returns a machine. greeting tells whether the agent begins.
func New(p Policy, greeting bool) *Machine {
	m := &Machine{policy: p, state: Listening, idleAt: p.Idle}
	if greeting {
		m.state, m.pending, m.greeting = Thinking, true, true
	}
	return m
}

// Start says what to do before the first event.
func (m *Machine) Start() []Action {
	if m.greeting {
		return []Action{m.wake(m.policy.Filler)}
	}
	return []Action{m.wake(m.idleAt)}
}

// Settled is when the caller's words were last answered: what was said before
// it is of no account any more.
func (m *Machine) Settled() time.Duration { return m.settled }

// State tells who has the floor.
func (m *Machine) State() State { return m.state }

// Step takes an event and says what to do.
func (m *Machine) Step(e Event) []Action {
	switch e.Kind {
	case Voice:
		return m.voice(e)
	case Loud:
		m.loud = e.For
		return m.bargeIn(e.At)
	case Silence:
		return m.silence(e)
	case Heard:
		return m.heard(e)
	case Deaf:
		m.asked, m.partial = min(m.asked, 1), "" // what was open is asked anew
		return nil
	case Listens:
		return m.listens()
	case Timer:
		return m.timer(e)
	case Audible:
		return m.audible(e)
	case Said:
		return m.said(e)
	case ReplyFail:
		return m.replyFail(e)
	}
	return nil
}

func (m *Machine) voice(e Event) []Action {
	m.voiced, m.loud = true, 0
	switch m.state {
	case Listening, Closing:
		return []Action{m.hear(e.At)}
	case Thinking:
		if m.answering != "" {
			return m.retract(e.At, "caller_resumed")
		}
	case Speaking, Hearing:
	}
	return nil
}

// hear gives the caller the floor. Speech that brings no words for a while is
// none: a noisy line must not keep the agent silent for ever.
func (m *Machine) hear(at time.Duration) Action {
	m.state, m.hearFrom = Hearing, at
	return m.wake(at + m.hearing())
}

// hearing is how long the caller keeps the floor without a new word. Where the
// energy gate hears nothing, the words alone tell.
func (m *Machine) hearing() time.Duration {
	if m.voiced {
		return m.policy.Wordless
	}
	return m.policy.Wordless / 3
}

func (m *Machine) silence(e Event) []Action {
	m.voiced = false
	m.lastEnd = e.From
	if m.state != Hearing {
		return nil
	}
	return m.finalize(e.At, m.lastEnd, "silence")
}

func (m *Machine) finalize(at, since time.Duration, reason string) []Action {
	m.state, m.closing = Closing, since
	m.asked++
	return append([]Action{{Do: Finalize, Reason: reason}}, m.close(at)...)
}

// listens is told that a recognizer is open in place of one that broke. It was
// told what the broken one did not finish; its end is asked for again.
func (m *Machine) listens() []Action {
	if m.state != Closing || m.asked == 0 {
		return nil
	}
	return []Action{{Do: Finalize, Reason: "recognizer_reopened"}}
}

func (m *Machine) heard(e Event) []Action {
	text := strings.TrimSpace(e.Text)
	if e.From > 0 && e.From < m.settled && text != "" {
		return nil // it was answered already
	}
	if e.Finalized && m.asked > 0 {
		m.asked--
	}
	switch {
	case !e.Final:
		m.partial = text
	case text != "":
		m.text, m.partial = append(m.text, text), ""
	default:
		m.partial = ""
	}
	m.usable = e.At
	if m.state == Closing {
		return m.close(e.At)
	}
	if text == "" {
		return nil
	}
	return m.words(e.At, e.Final)
}

// words is told of words that came outside the silence that asks for them.
func (m *Machine) words(at time.Duration, final bool) []Action {
	switch m.state {
	case Hearing:
		return []Action{m.hear(at)}
	case Listening:
		if final {
			return m.missed(at)
		}
		return []Action{m.hear(at)} // the energy gate missed it
	case Thinking:
		if final && m.answering != "" {
			return append(m.retract(at, "words_heard"), m.missed(at)...)
		}
	case Speaking:
		// Two words are more than a sign of listening, even where the voice
		// was too faint for the energy gate.
		if final && !m.greeting && len(strings.Fields(m.turnText())) >= 2 {
			return append(m.yield(at, "words_heard"), m.missed(at)...)
		}
	case Closing:
	}
	return nil
}

// missed takes words whose sound the energy gate did not notice for a turn.
func (m *Machine) missed(at time.Duration) []Action {
	if m.voiced {
		return nil // the silence after it will tell
	}
	m.state, m.lastEnd = Closing, max(m.lastEnd, at-patience(1))
	return m.close(at)
}

// turnText is what the caller said in this turn so far.
func (m *Machine) turnText() string {
	return strings.TrimSpace(strings.Join(append(slices.Clip(m.text), m.partial), " "))
}

// close decides, in the caller's silence, whether the turn has ended.
func (m *Machine) close(at time.Duration) []Action {
	text := m.turnText()
	if m.asked > 0 {
		due := m.closing + m.policy.Deaf
		if text != "" {
			due = m.closing + m.policy.Final
		}
		if at < due {
			return []Action{m.wake(due)}
		}
		m.asked, m.usable = 0, at
		if text == "" {
			m.settled = m.lastEnd
			return m.apologise(at, RecognizerSilent)
		}
	}
	if text == "" {
		m.state = Listening
		m.voiced = false // whatever it was, it is no voice
		return []Action{{Do: Drop, Reason: "no_words"}, m.wake(max(at, m.idleAt))}
	}
	p := (eot.Pause{Text: text}).Guess().P
	if due := m.lastEnd + patience(p); at < due {
		return []Action{m.wake(due)}
	}
	m.state, m.commit, m.filled, m.pending = Thinking, at, false, true
	m.answering, m.text, m.partial, m.nudges, m.greeting = text, nil, "", 0, false
	m.settled = m.lastEnd
	return []Action{
		{Do: Commit, Text: text, Reason: reason(p), From: m.lastEnd, Usable: m.usable, Fragments: m.fragments + 1, At: at},
		m.wake(max(at, m.lastEnd+m.policy.Filler)),
	}
}

func reason(p float64) string {
	switch {
	case p >= 0.9:
		return "sentence_ended"
	case p >= 0.6:
		return "silence"
	default:
		return "long_silence"
	}
}

func (m *Machine) timer(e Event) []Action {
	switch m.state {
	case Closing:
		return m.close(e.At)
	case Thinking:
		if !m.filled && (m.answering != "" || m.greeting) {
			m.filled = true
			return []Action{{Do: Fill, Reason: "answer_slow"}, m.wake(m.commit + m.policy.GiveUp)}
		}
		return m.apologise(e.At, "answer_too_slow")
	case Listening:
		if m.nudges++; m.nudges > m.policy.Nudges {
			return []Action{{Do: Leave, Reason: "inactivity"}}
		}
		return m.speak(Action{Do: Nudge, Reason: "idle"}, e.At)
	case Hearing:
		m.lastEnd = m.hearFrom
		return m.finalize(e.At, e.At, "no_more_words")
	case Speaking:
	}
	return nil
}

// wake sets the timer; 0 takes it away.
func (m *Machine) wake(at time.Duration) Action { return Action{Do: SetTimer, At: at} }

// patience is how long after the caller's last sound the turn is committed.
func patience(p float64) time.Duration {
	switch {
	case p >= 0.9:
		return 220 * time.Millisecond
	case p >= 0.6:
		return 400 * time.Millisecond
	case p >= 0.3:
		return 800 * time.Millisecond
	default:
		return 1600 * time.Millisecond
	}
}
