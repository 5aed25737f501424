package turn

import "time"

// answersCaller tells that the speech that is made, or said, answers the caller:
// the agent's own does not.
func (m *Machine) answersCaller() bool { return m.answering != "" || m.answered != "" }

// made is told that the first sound of the answer is there.
func (m *Machine) made(Event) []Action {
	m.ready = true
	return m.release()
}

// release lets the answer be heard, unless the caller may be going on: then it
// would be heard over the caller's voice.
func (m *Machine) release() []Action {
	quiet := !m.stirred && !m.voiced && m.doubt == 0
	if m.greeting || m.state == Speaking {
		quiet = true // a hello does not hold the greeting back, nor the filler its answer
	}
	if !m.pending || !m.ready || m.released || !quiet {
		return nil
	}
	m.released = true
	return []Action{{Do: Release}}
}

// filling is when something is said in place of an answer that is not there. One
// that was begun before a late commit has been waited for since.
func (m *Machine) filling() time.Duration {
	since := m.commit
	if m.begun {
		since -= ahead
	}
	return max(since+grace, m.settled+m.policy.Filler)
}

// waited is told that an answer takes long.
func (m *Machine) waited(at time.Duration) []Action {
	if m.doubt > 0 && at >= m.doubt {
		m.doubt = 0
		if acts := m.release(); acts != nil {
			return append(acts, m.wake(m.commit+m.policy.GiveUp))
		}
	}
	switch due := m.filling(); {
	case at >= m.commit+m.policy.GiveUp:
		return m.apologise(at, "answer_too_slow")
	case m.voiced:
		return []Action{m.wake(at + m.policy.Sustained)}
	case !m.filled && !m.released && at < due:
		return []Action{m.wake(due)}
	case !m.filled && !m.released && (m.answersCaller() || m.greeting):
		m.filled = true
		return []Action{{Do: Fill, Reason: "answer_slow"}, m.wake(m.commit + m.policy.GiveUp)}
	default:
		return []Action{m.wake(m.commit + m.policy.GiveUp)}
	}
}

func (m *Machine) audible(e Event) []Action {
	m.state = Speaking
	if e.Text != Filler {
		m.pending, m.audibleAt, m.specs, m.whole = false, e.At, 0, false
		m.text, m.partial = nil, ""
	}
	acts := []Action{m.wake(0)}
	switch { // who began between the release and now
	case m.voiced:
		acts = append(acts, m.spokenInto(e)...)
	case m.stirred:
		acts = append(acts, m.stir()...)
	}
	return append(acts, m.sustained(e.At)...)
}

// retract drops an answer of which nothing was heard, or next to nothing, and
// glues what it answered to what the caller says next.
func (m *Machine) retract(at time.Duration, reason string) []Action {
	m.merging = false
	if m.policy.NoMerge {
		m.pending = false
		return m.yield(at, reason)
	}
	m.pending, m.released, m.doubt, m.ducked = false, false, 0, false
	if m.answering != "" {
		m.text = append([]string{m.answering}, m.text...)
	}
	m.keys = m.answered + m.keys
	m.answering, m.answered = "", ""
	m.fragments++
	if m.state == Thinking {
		m.paused(m.settled)
	} else {
		m.wasCutOff()
	}
	return []Action{{Do: Retract, Reason: reason}, m.hear(at)}
}

// yield gives the floor to the caller for good.
func (m *Machine) yield(at time.Duration, reason string) []Action {
	if m.pending && m.answersCaller() && !m.policy.NoMerge {
		return m.retract(at, reason) // only a filler was heard
	}
	if m.answering != "" && m.onset > m.audibleAt && m.onset-m.audibleAt < spokenOver {
		m.wasCutOff()
	}
	m.pending, m.released, m.greeting, m.merging, m.ducked, m.doubt = false, false, false, false, false, 0
	m.specs = 0
	m.answering, m.answered, m.fragments = "", "", 0
	m.question, m.noted, m.quietAt = m.saying, "", at
	m.idleAt = at + m.policy.Idle
	return []Action{{Do: Yield, Reason: reason}, m.hear(at)}
}

// speak begins a speech of the agent's own.
func (m *Machine) speak(a Action, at time.Duration) []Action {
	m.state, m.pending, m.ready, m.released, m.doubt = Thinking, true, true, true, 0
	m.answering, m.answered, m.commit, m.begun = "", "", at, false
	return []Action{a, m.wake(at + m.policy.GiveUp)}
}

// said ends the agent's speech. After a filler the answer is still to come.
func (m *Machine) said(e Event) []Action {
	var acts []Action
	if m.state == Paused { // the pause came too late for its last frame
		acts = append(acts, Action{Do: Resume, Reason: "said"})
	}
	acts = append(acts, m.unduck("said")...)
	if m.pending {
		m.state = Thinking
		acts = append(acts, m.wake(m.commit+m.policy.GiveUp))
		return append(acts, m.release()...)
	}
	return append(acts, m.silent(e)...)
}

// silent takes the floor from the agent, who has said all.
func (m *Machine) silent(e Event) []Action {
	if e.Text == Reply {
		m.failures = 0
		if m.clean++; m.clean >= forgiven {
			m.cutOffs, m.clean = max(0, m.cutOffs-1), 0
		}
	}
	greeting, question := m.greeting, asks(m.saying)
	m.answering, m.answered, m.fragments, m.greeting, m.merging = "", "", 0, false, false
	m.question, m.quietAt = m.saying, e.At
	m.idleAt = e.At + m.policy.Idle
	if m.voiced {
		return []Action{m.hear(e.At)}
	}
	if m.failures >= m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	early := m.early(e.At, question)
	if m.keys != "" || early || greeting && m.into() {
		m.state, m.lull, m.lastEnd = Closing, true, max(m.lastEnd, m.notedAt)
		acts := m.close(e.At)
		for i := range acts {
			acts[i].Told = early && acts[i].Do == Commit
		}
		return acts
	}
	m.state, m.text, m.partial, m.noted = Listening, nil, "", ""
	return []Action{m.wake(m.idleAt)}
}

// into tells that the caller said something into the greeting that asks for an
// answer: more than a hello, and more than the greeting come back.
func (m *Machine) into() bool {
	words := normal(m.turnText())
	return len(words) > 2 && !echo(words, m.saying, 0.6)
}

// early takes what the caller said into the end of a question for its answer.
func (m *Machine) early(at time.Duration, question bool) bool {
	if m.noted == "" || !question || at-m.notedAt > 1500*time.Millisecond {
		return false
	}
	m.text, m.partial, m.noted, m.usable = []string{m.noted}, "", "", at
	return true
}

// replyFail is told when the model or the voice broke, or stopped in the middle.
func (m *Machine) replyFail(e Event) []Action {
	if !m.pending && m.state != Speaking && m.state != Paused {
		m.spec, m.ready = "", false // an answer that was begun early is lost
		return nil
	}
	if m.voiced && m.state == Thinking && m.answersCaller() && !m.policy.NoMerge {
		m.failures++
		return m.retract(e.At, "reply_failed") // and asked anew, with what the caller is adding
	}
	return m.apologise(e.At, "reply_failed")
}

func (m *Machine) apologise(at time.Duration, reason string) []Action {
	m.failures++
	m.text, m.partial, m.keys, m.fragments, m.filled, m.greeting = nil, "", "", 0, true, false
	m.merging, m.ducked, m.spec, m.specs = false, false, "", 0
	if m.failures > m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	return m.speak(Action{Do: Apologise, Reason: reason}, at)
}
