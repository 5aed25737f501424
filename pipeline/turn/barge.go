package turn

import "time"

// onVoiceOverSpeech handles a voice that began during the agent's speech. If the answer has just begun, the caller
// probably continues the turn, so the agent pauses.
func (m *Machine) onVoiceOverSpeech(e Event) []Action {
	acts := m.agent.duck(m.state)
	if m.agent.text == "" || !m.agent.mayMerge(e) {
		return acts
	}
	m.agent.merging, m.state = true, Paused
	return append(acts, m.agent.pause(e.At, "answer_just_began")...)
}

// onLongVoice decides by the length of the caller's voice. Only voiced sound counts. A cough is therefore short even
// if the detector reports its end late.
func (m *Machine) onLongVoice(at time.Duration) []Action {
	a, loud := &m.agent, m.caller.loud
	if !m.caller.voiced {
		return nil
	}
	switch {
	case m.state == Thinking && loud >= m.policy.Insist && a.answersCaller():
		return m.retract(at, "caller_resumed")
	case m.state == Speaking && loud >= a.bargeIn() && !a.isUninterruptible():
		m.state = Paused
		return append(a.pause(at, "caller_speaks"), m.onLongVoice(at)...)
	case m.state == Paused && a.merging && !a.whole && loud >= m.policy.Insist:
		return m.retract(at, "caller_resumed")
	case m.state == Paused && loud >= m.policy.Content:
		return m.yield(at, "keeps_speaking")
	default:
		return nil
	}
}

// onSoundEnd requests the final text after the caller's voice ended while the agent prepared or played an answer.
func (m *Machine) onSoundEnd(at time.Duration) []Action {
	m.recognizer.asked++
	m.recognizer.closing = m.caller.lastEnd
	acts := []Action{{Do: Finalize, Reason: "sound_beside"}}
	switch m.state {
	case Thinking:
		if m.agent.pending && !m.agent.released {
			m.agent.doubt = at + m.policy.Resume
			acts = append(acts, wake(m.agent.doubt))
		}
		return acts
	case Paused:
		return append(acts, wake(max(at, m.caller.lastEnd+m.policy.Resume)))
	default:
		return append(acts, m.agent.unduck("silence")...)
	}
}

// onWordsOverSpeech decides about words that came during the agent's speech.
func (m *Machine) onWordsOverSpeech(e Event) []Action {
	words := normal(m.recognizer.words())
	if len(words) == 0 {
		if m.state == Paused && m.recognizer.isDone(e, &m.caller) {
			return m.resume("no_words")
		}
		return nil
	}
	switch {
	case m.agent.ignoresWords(m.state):
		return nil
	case m.agent.isEcho(words, e):
		m.recognizer.clear()
		if m.state == Paused && m.caller.isSilent() {
			return m.resume("echo")
		}
		return nil
	case !backchannel(words):
		if m.state == Speaking && !e.Final && !m.caller.voiced {
			return nil // without a detected voice, partial words are unreliable
		}
		return m.interrupt(e)
	case m.caller.voiced || !e.Final:
		return nil // more words may follow
	default:
		return append(m.agent.note(e.At, &m.recognizer, &m.caller), m.resume("backchannel")...)
	}
}

// interrupt gives the floor to the caller, whose words need an answer.
func (m *Machine) interrupt(e Event) []Action {
	var acts []Action
	a, r := &m.agent, &m.recognizer
	switch {
	case a.merging && !a.whole:
		acts = m.retract(e.At, "caller_resumed")
	case a.text != "" && r.isLate(&m.caller) && a.mayMerge(e): // the words belong to the turn that is being answered
		acts = m.retract(e.At, "words_heard")
	default:
		acts = m.yield(e.At, "words_heard")
	}
	if m.caller.voiced {
		return acts
	}
	if r.asked > 0 {
		m.state, r.closing = Closing, m.caller.lastEnd
		return append(acts, m.close(e.At)...)
	}
	return append(acts, m.closeLate(e.At)...)
}

// resume continues paused speech, and restores the volume of lowered speech.
func (m *Machine) resume(reason string) []Action {
	if m.state != Paused {
		return m.agent.unduck(reason)
	}
	m.state, m.agent.merging, m.agent.ducked = Speaking, false, false
	m.recognizer.clear()
	return append([]Action{{Do: Resume, Reason: reason}, wake(0)}, m.agent.release(m.state, &m.caller)...)
}
