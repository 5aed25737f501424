package turn

import "strings"

// Greet is the text of a Floor that the greeting is for.
const Greet = "greet"

// held is told what happens while the agent may not speak. What is said
// meanwhile is kept: it may have to be answered.
func (m *Machine) held(e Event) []Action {
	switch e.Kind {
	case Stirred, Calmed, Voice, Loud, Lull, Silence:
		return m.sound(e)
	case Listens:
		return m.listens(e)
	case Heard:
		m.take(e, strings.TrimSpace(e.Text))
	case Deaf:
		m.asked, m.unpaid, m.partial = min(m.asked, 1), 0, ""
	case Key:
		m.keys, m.keyed = m.keys+e.Text, e.At
	case Ready:
		m.ready = true
	case ReplyFail:
		m.broken = m.greeting
	case Floor:
		return m.floor(e)
	case Judged, Timer, Audible, Said, Own, Hold:
	}
	return nil
}

// floor gives the line to the agent: it greets, or answers what was said.
func (m *Machine) floor(e Event) []Action {
	greets := m.greeting && e.Text == Greet
	m.greeting, m.idleAt = greets, e.At+m.policy.Idle
	switch {
	case greets && m.broken:
		return m.apologise(e.At, "reply_failed")
	case greets:
		m.state, m.pending, m.commit, m.begun = Thinking, true, e.At, false
		m.settled, m.told = m.lastEnd, m.lastEnd
		m.text, m.partial, m.keys = nil, "", ""
		m.giveUp()
		return append([]Action{m.wake(m.filling())}, m.release()...)
	case m.voiced:
		return []Action{m.hear(e.At)}
	case m.turnText() != "" || m.keys != "" || m.asked > 0:
		m.state, m.lull, m.closing, m.usable = Closing, true, e.At, e.At
		return append(m.speculate(), m.close(e.At)...)
	default:
		m.state = Listening
		return []Action{m.wake(m.idleAt)}
	}
}

// hold takes the line from the agent. What was said, and was not answered to the
// end, is kept for the next Floor.
func (m *Machine) hold(e Event) []Action {
	var acts []Action
	switch m.state {
	case Thinking, Speaking, Paused:
		acts = m.yield(e.At, "machine_answered")
	case Listening, Hearing, Closing, Held:
	}
	m.state, m.greeting, m.spec = Held, false, ""
	return append(acts, m.wake(0))
}
