package turn

import (
	"slices"
	"strings"
	"time"
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
	voiced  bool          // right now
	onset   time.Duration // when that began
	lastEnd time.Duration // the last voiced sample
	text    []string      // final stretches of this turn
	partial string        // what may still change
	usable  time.Duration // when text became what it is
	open    bool          // Finalize was asked and is not answered

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
		return []Action{m.wake(m.policy.GiveUp)}
	}
	return []Action{m.wake(m.idleAt)}
}

// State tells who has the floor.
func (m *Machine) State() State { return m.state }

// Step takes an event and says what to do.
func (m *Machine) Step(e Event) []Action {
	switch e.Kind {
	case Voice:
		return m.voice(e)
	case Silence:
		return m.silence(e)
	case Heard:
		return m.heard(e)
	case Deaf:
		return m.deaf(e)
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
	m.voiced, m.onset = true, e.From
	switch m.state {
	case Listening, Closing:
		m.state = Hearing
		return []Action{m.wake(0)}
	case Thinking:
		if m.answering != "" {
			return m.retract("caller_resumed")
		}
	case Speaking:
		return m.bargeIn(e.At)
	case Hearing:
	}
	return nil
}

// retract drops an answer that nobody heard and glues what it answered to what
// the caller says next.
func (m *Machine) retract(reason string) []Action {
	m.state, m.pending = Hearing, false
	m.text = append([]string{m.answering}, m.text...)
	m.answering = ""
	m.fragments++
	return []Action{{Do: Retract, Reason: reason}, m.wake(0)}
}

func (m *Machine) audible(e Event) []Action {
	m.state = Speaking
	if e.Text != Filler {
		m.pending, m.fragments = false, 0
		m.text, m.partial = nil, ""
	}
	if acts := m.bargeIn(e.At); acts != nil {
		return acts
	}
	return []Action{m.wake(0)}
}

// bargeIn yields once the caller has spoken long enough into the agent's
// speech, and asks to be woken for it until then.
func (m *Machine) bargeIn(at time.Duration) []Action {
	if !m.voiced {
		return nil
	}
	sustained := m.policy.Sustained
	if m.greeting {
		sustained = m.policy.SustainedGreeting
	}
	if due := m.onset + sustained; at < due {
		return []Action{m.wake(due)}
	}
	return m.yield("caller_speaks")
}

func (m *Machine) yield(reason string) []Action {
	if m.pending && m.answering != "" {
		return m.retract(reason) // only a filler was heard
	}
	m.state, m.pending, m.answering, m.greeting = Hearing, false, "", false
	return []Action{{Do: Yield, Reason: reason}, m.wake(0)}
}

func (m *Machine) silence(e Event) []Action {
	m.voiced = false
	m.lastEnd = e.From
	if m.state != Hearing {
		return nil
	}
	m.state, m.open = Closing, true
	return append([]Action{{Do: Finalize, Reason: "silence"}}, m.close(e.At)...)
}

func (m *Machine) heard(e Event) []Action {
	text := strings.TrimSpace(e.Text)
	switch {
	case !e.Final:
		m.partial = text
	case text != "":
		m.text, m.partial = append(m.text, text), ""
	default:
		m.partial = ""
	}
	m.usable = e.At
	if e.Finalized {
		m.open = false
	}
	switch m.state {
	case Closing:
		return m.close(e.At)
	case Speaking:
		// Two words are more than a sign of listening, even where the voice
		// was too faint for the energy gate.
		if e.Final && len(strings.Fields(m.turnText())) >= 2 && !m.greeting {
			return append(m.yield("words_heard"), m.missed(e.At)...)
		}
	case Listening:
		if e.Final && text != "" {
			return m.missed(e.At)
		}
	case Hearing, Thinking:
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
	if m.open {
		due := m.lastEnd + m.policy.Deaf
		if text != "" {
			due = m.lastEnd + m.policy.Final
		}
		if at < due {
			return []Action{m.wake(due)}
		}
		m.open, m.usable = false, at
		if text == "" {
			return m.apologise(at, RecognizerSilent)
		}
	}
	if text == "" {
		m.state = Listening
		return []Action{{Do: Drop, Reason: "no_words"}, m.wake(max(at, m.idleAt))}
	}
	p := EndOfTurn(text)
	if due := m.lastEnd + patience(p); at < due {
		return []Action{m.wake(due)}
	}
	m.state, m.commit, m.filled, m.pending = Thinking, at, false, true
	m.answering, m.text, m.partial, m.nudges, m.greeting = text, nil, "", 0, false
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

func (m *Machine) deaf(e Event) []Action {
	m.open, m.partial = false, ""
	if m.state != Closing {
		return nil // a speech that goes on is judged at its end
	}
	if m.turnText() == "" {
		return m.apologise(e.At, "recognizer_failed")
	}
	return m.close(e.At)
}

func (m *Machine) timer(e Event) []Action {
	switch m.state {
	case Closing:
		return m.close(e.At)
	case Speaking:
		return m.bargeIn(e.At)
	case Thinking:
		if !m.filled && m.answering != "" {
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
	}
	return nil
}

// speak begins a speech of the agent's own.
func (m *Machine) speak(a Action, at time.Duration) []Action {
	m.state, m.pending, m.answering, m.commit = Thinking, true, "", at
	return []Action{a, m.wake(at + m.policy.GiveUp)}
}

// said ends the agent's speech. After a filler the answer is still to come.
func (m *Machine) said(e Event) []Action {
	if m.pending {
		m.state = Thinking
		return []Action{m.wake(m.commit + m.policy.GiveUp)}
	}
	if e.Text == Reply {
		m.failures = 0
	}
	m.answering, m.greeting = "", false
	m.idleAt = e.At + m.policy.Idle
	if m.voiced {
		m.state = Hearing
		return []Action{m.wake(0)}
	}
	m.state, m.text, m.partial = Listening, nil, ""
	if m.failures >= m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	return []Action{m.wake(m.idleAt)}
}

// replyFail is told when the model or the voice broke, or stopped in the middle.
func (m *Machine) replyFail(e Event) []Action {
	if !m.pending && m.state != Speaking {
		return nil // a reply that is over already
	}
	return m.apologise(e.At, "reply_failed")
}

func (m *Machine) apologise(at time.Duration, reason string) []Action {
	m.failures++
	m.text, m.partial, m.fragments, m.filled = nil, "", 0, true
	if m.failures > m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	return m.speak(Action{Do: Apologise, Reason: reason}, at)
}

// wake sets the timer; 0 takes it away.
func (m *Machine) wake(at time.Duration) Action { return Action{Do: SetTimer, At: at} }
