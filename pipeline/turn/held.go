package turn

import "strings"

// Greet is the Text of a Floor event that lets the agent speak the greeting.
const Greet = "greet"

// onHeld handles an event while the agent may not speak. The caller's words are kept, because
// they may need an answer.
func (m *Machine) onHeld(e Event) []Action {
	switch e.Kind {
	case SoundStart, SoundEnd, Voice, VoiceLength, Lull, Silence:
		return m.onSound(e)
	case RecognizerOpen:
		return m.recognizer.onOpen(e, m.state)
	case Transcript:
		m.recognizer.add(e, strings.TrimSpace(e.Text))
	case RecognizerLost:
		m.recognizer.onFailure(m.state)
	case Key:
		m.caller.onKey(e)
	case Typed:
		if !m.isTooLong(e) {
			m.caller.onTyped(e)
		}
	case Ready:
		m.agent.ready = true
	case ReplyFailed:
		m.agent.broken = m.agent.greeting
	case Floor:
		return m.onFloor(e)
	case Classified, Timer, SpeechStart, SpeechEnd, OwnSpeech, Hold:
	}
	return nil
}

// onFloor lets the agent greet, or answer what the caller said before.
func (m *Machine) onFloor(e Event) []Action {
	a, r := &m.agent, &m.recognizer
	a.greeting, m.idleAt = a.greeting && e.Text == Greet, e.At+m.policy.Idle
	switch {
	case a.greeting && a.broken:
		return m.apologize(e.At, "reply_failed")
	case a.greeting:
		m.state, a.pending, a.commit, a.begun = Thinking, true, e.At, false
		r.settled, r.doneUntil = m.caller.lastEnd, m.caller.lastEnd
		r.clear()
		m.caller.clearInput()
		r.abandon()
		return append([]Action{wake(a.fillerDue(r.settled))}, a.release(m.state, &m.caller)...)
	case m.caller.voiced:
		return []Action{m.hear(e.At)}
	case r.words() != "" || m.caller.hasInput() || r.asked > 0:
		m.state, m.caller.lull, r.closing, r.usable = Closing, true, e.At, e.At
		return append(m.speculate(mayHaveFinished), m.close(e.At)...)
	default:
		m.state = Listening
		return []Action{wake(m.idleAt)}
	}
}

// hold stops the agent until the next Floor. Words that are not fully answered are kept.
func (m *Machine) hold(e Event) []Action {
	var acts []Action
	switch m.state {
	case Thinking, Speaking, Paused:
		acts = m.yield(e.At, "machine_answered")
	case Listening, Hearing, Closing, Held:
	}
	m.state, m.agent.greeting, m.agent.spec = Held, false, ""
	return append(acts, wake(0))
}
