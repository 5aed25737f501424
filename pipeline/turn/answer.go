package turn

import "time"

// retract drops an answer that nobody heard and glues what it answered to what
// the caller says next.
func (m *Machine) retract(at time.Duration, reason string) []Action {
	m.pending = false
	m.text = append([]string{m.answering}, m.text...)
	m.answering = ""
	m.fragments++
	return []Action{{Do: Retract, Reason: reason}, m.hear(at)}
}

func (m *Machine) audible(e Event) []Action {
	m.state = Speaking
	if e.Text != Filler {
		m.pending, m.fragments = false, 0
		m.text, m.partial = nil, ""
	}
	return append([]Action{m.wake(0)}, m.bargeIn(e.At)...)
}

// bargeIn yields once the caller has spoken for long enough into the agent's
// speech. Only voiced sound counts: a click or a cough is short, whatever
// silence it takes to be sure that it is over.
func (m *Machine) bargeIn(at time.Duration) []Action {
	sustained := m.policy.Sustained
	if m.greeting {
		sustained = m.policy.SustainedGreeting
	}
	if m.state != Speaking || !m.voiced || m.loud < sustained {
		return nil
	}
	return m.yield(at, "caller_speaks")
}

func (m *Machine) yield(at time.Duration, reason string) []Action {
	if m.pending && m.answering != "" {
		return m.retract(at, reason) // only a filler was heard
	}
	m.pending, m.answering, m.greeting = false, "", false
	m.idleAt = at + m.policy.Idle
	return []Action{{Do: Yield, Reason: reason}, m.hear(at)}
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
		return []Action{m.hear(e.At)}
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
	m.text, m.partial, m.fragments, m.filled, m.greeting = nil, "", 0, true, false
	if m.failures > m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	return m.speak(Action{Do: Apologise, Reason: reason}, at)
}
