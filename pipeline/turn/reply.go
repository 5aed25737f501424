package turn

import "time"

func (m *Machine) onAgent(e Event) []Action {
	switch e.Kind {
	case Ready:
		m.agent.ready = true
		return m.agent.release(m.state, &m.caller)
	case SpeechStart:
		return m.onAudible(e)
	case SpeechEnd:
		return m.onSaid(e)
	case ReplyFailed:
		return m.onReplyFailure(e)
	case OwnSpeech:
		m.state = Thinking
		return m.agent.speak(Action{}, e.At)[1:]
	case Hold:
		return m.hold(e)
	default: // a Floor event; the agent may already speak
		return nil
	}
}

func (m *Machine) onLongThinking(at time.Duration) []Action {
	a, giveUp := &m.agent, m.agent.commit+m.policy.GiveUp
	if a.doubt > 0 && at >= a.doubt {
		a.doubt = 0
		if acts := a.release(m.state, &m.caller); acts != nil {
			return append(acts, wake(giveUp))
		}
	}
	switch {
	case at >= giveUp:
		return m.apologize(at, "answer_too_slow")
	case m.caller.voiced:
		return []Action{wake(at + m.policy.Sustained)}
	default:
		return a.fill(at, a.fillerDue(m.recognizer.settled))
	}
}

func (m *Machine) onAudible(e Event) []Action {
	m.state = Speaking
	if a := &m.agent; e.Text != Filler {
		a.pending, a.audibleAt, a.specs, a.whole = false, e.At, 0, false
		m.recognizer.clear()
	}
	acts := []Action{wake(0)}
	switch { // the caller may have begun to speak since Release
	case m.caller.voiced:
		acts = append(acts, m.onVoiceOverSpeech(e)...)
	case m.caller.sound:
		acts = append(acts, m.agent.duck(m.state)...)
	}
	return append(acts, m.onLongVoice(e.At)...)
}

// retract drops an answer of which the caller heard almost nothing, and joins the answered text
// with the caller's next words.
func (m *Machine) retract(at time.Duration, reason string) []Action {
	a, r := &m.agent, &m.recognizer
	a.merging = false
	if m.policy.NoMerge {
		a.pending = false
		return m.yield(at, reason)
	}
	a.pending, a.released, a.doubt, a.ducked = false, false, 0, false
	if a.text != "" {
		r.text = append([]string{a.text}, r.text...)
	}
	m.caller.keys = a.keys + m.caller.keys
	a.text, a.keys = "", ""
	a.fragments++
	if m.state == Thinking {
		m.endpointer.onPause(r.settled, m.caller.onset)
	} else {
		m.endpointer.onCutOff(r.settled, m.caller.onset)
	}
	return []Action{{Do: Retract, Reason: reason}, m.hear(at)}
}

// yield ends the agent's speech and gives the caller the floor.
func (m *Machine) yield(at time.Duration, reason string) []Action {
	a := &m.agent
	if a.pending && a.answersCaller() && !m.policy.NoMerge {
		return m.retract(at, reason) // the caller heard only a filler
	}
	if onset := m.caller.onset; a.text != "" && onset > a.audibleAt && onset-a.audibleAt < spokenOver {
		m.endpointer.onCutOff(m.recognizer.settled, onset)
	}
	a.stop(at)
	m.endpointer.question = a.saying
	m.idleAt = at + m.policy.Idle
	return []Action{{Do: Yield, Reason: reason}, m.hear(at)}
}

// onSaid ends the agent's speech. After a filler, the answer is still to come.
func (m *Machine) onSaid(e Event) []Action {
	var acts []Action
	if m.state == Paused { // the pause came too late to stop the last frame
		acts = append(acts, Action{Do: Resume, Reason: "said"})
	}
	acts = append(acts, m.agent.unduck("said")...)
	if m.agent.pending {
		m.state = Thinking
		acts = append(acts, wake(m.agent.commit+m.policy.GiveUp))
		return append(acts, m.agent.release(m.state, &m.caller)...)
	}
	return append(acts, m.finish(e)...)
}

// finish ends the agent's turn after its last word. If the agent asked a question, words that the caller said near
// its end count as the answer.
func (m *Machine) finish(e Event) []Action {
	a, r, c := &m.agent, &m.recognizer, &m.caller
	if e.Text == Reply {
		m.failures = 0
		m.endpointer.onReplyEnd()
	}
	greeting := a.greeting
	a.text, a.keys, a.fragments, a.greeting, a.merging = "", "", 0, false, false
	m.endpointer.question, a.quietAt = a.saying, e.At
	m.idleAt = e.At + m.policy.Idle
	if c.voiced {
		return []Action{m.hear(e.At)}
	}
	if m.failures >= m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	early := a.noted != "" && asks(a.saying) && e.At-a.notedAt <= earlyAnswer
	if early {
		r.text, r.partial, a.noted, r.usable = []string{a.noted}, "", "", e.At
	}
	if c.hasInput() || early || greeting && a.isAnswerToGreeting(r.words()) {
		m.state, c.lull, c.lastEnd = Closing, true, max(c.lastEnd, a.notedAt)
		acts := m.close(e.At)
		for i := range acts {
			acts[i].Noted = early && acts[i].Do == Commit
		}
		return acts
	}
	m.state, a.noted = Listening, ""
	r.clear()
	return []Action{wake(m.idleAt)}
}

// onReplyFailure handles a failure of the model or the voice, before or during the speech.
func (m *Machine) onReplyFailure(e Event) []Action {
	a := &m.agent
	if !a.pending && m.state != Speaking && m.state != Paused {
		a.spec, a.ready = "", false // the answer prepared before the commit has failed
		return nil
	}
	if m.caller.voiced && m.state == Thinking && a.answersCaller() && !m.policy.NoMerge {
		m.failures++
		return m.retract(e.At, "reply_failed") // the next request includes what the caller adds now
	}
	return m.apologize(e.At, "reply_failed")
}

// apologize drops the answer and apologizes, or leaves after too many failures.
func (m *Machine) apologize(at time.Duration, reason string) []Action {
	m.failures++
	m.recognizer.clear()
	m.caller.clearInput()
	a := &m.agent
	a.fragments, a.filled, a.greeting, a.merging, a.ducked, a.spec, a.specs = 0, true, false, false, false, "", 0
	if m.failures > m.policy.Failures {
		return []Action{{Do: Leave, Reason: "agent_error"}}
	}
	m.state = Thinking
	return a.speak(Action{Do: Apologize, Reason: reason}, at)
}
