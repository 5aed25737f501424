package turn

import (
	"slices"
	"strings"
	"time"
)

// stir lowers the agent's voice at the first sign of the caller's.
func (m *Machine) stir() []Action {
	if m.state != Speaking || m.ducked || m.deafToCaller() {
		return nil
	}
	m.ducked = true
	return []Action{{Do: Duck, Reason: "sound"}}
}

// calm takes back what a sound began that came to nothing.
func (m *Machine) calm(at time.Duration) []Action {
	switch m.state {
	case Speaking:
		return m.unduck("no_voice")
	case Thinking:
		return m.release()
	case Closing:
		return m.close(at)
	case Listening, Hearing, Paused, Held:
	}
	return nil
}

func (m *Machine) unduck(reason string) []Action {
	if !m.ducked {
		return nil
	}
	m.ducked = false
	return []Action{{Do: Unduck, Reason: reason}}
}

// deafToCaller tells that the agent is saying what must be said to its end.
func (m *Machine) deafToCaller() bool { return m.greeting && m.policy.Uninterruptible }

// spokenInto is told that a voice began in the agent's speech. Within the first
// moments of an answer it is the caller going on: silence serves both then.
func (m *Machine) spokenInto(e Event) []Action {
	acts := m.stir()
	if m.answering == "" || !m.mayMerge(e) {
		return acts
	}
	m.merging = true
	return append(acts, m.pause(e.At, "answer_just_began")...)
}

// mayMerge tells that so little was heard of the answer that it can be taken back.
func (m *Machine) mayMerge(e Event) bool {
	return !m.greeting && !m.pending && !m.policy.NoMerge && e.At-m.audibleAt <= m.policy.Merge && e.Words <= m.policy.MergeWords
}

// pause falls silent until it is clear what the caller wants.
func (m *Machine) pause(at time.Duration, reason string) []Action {
	m.state = Paused
	return []Action{{Do: Pause, Reason: reason}, m.wake(at + m.policy.Wordless)}
}

// sustained is told for how long the caller has spoken by now. Only voiced
// sound counts: a click or a cough is short, whatever silence it takes to be
// sure that it is over.
func (m *Machine) sustained(at time.Duration) []Action {
	if !m.voiced {
		return nil
	}
	switch m.state {
	case Thinking:
		if m.loud >= m.policy.Insist && m.answersCaller() {
			return m.retract(at, "caller_resumed")
		}
	case Speaking:
		if m.loud >= m.profile() && !m.deafToCaller() {
			return append(m.pause(at, "caller_speaks"), m.insist(at)...)
		}
	case Paused:
		return m.insist(at)
	case Listening, Hearing, Closing, Held:
	}
	return nil
}

// profile is how long the caller must speak into what the agent is saying.
func (m *Machine) profile() time.Duration {
	switch {
	case m.greeting:
		return m.policy.SustainedGreeting
	case readsBack(m.saying):
		return m.policy.SustainedReadBack
	default:
		return m.policy.Sustained
	}
}

// insist takes a voice that goes on and on for one that wants the floor.
func (m *Machine) insist(at time.Duration) []Action {
	switch {
	case m.merging && !m.whole && m.loud >= m.policy.Insist:
		return m.retract(at, "caller_resumed")
	case m.loud >= m.policy.Content:
		return m.yield(at, "keeps_speaking")
	default:
		return nil
	}
}

// soundOver is told that a sound beside the agent's speech, or before it, is
// over: the recognizer is asked what it was.
func (m *Machine) soundOver(at time.Duration) []Action {
	m.asked++
	m.closing = m.lastEnd
	acts := []Action{{Do: Finalize, Reason: "sound_beside"}}
	switch m.state {
	case Thinking:
		if m.pending && !m.released {
			m.doubt = at + m.policy.Resume
			acts = append(acts, m.wake(m.doubt))
		}
		return acts
	case Paused:
		return append(acts, m.wake(max(at, m.lastEnd+m.policy.Resume)))
	default:
		return append(acts, m.unduck("silence")...)
	}
}

// beside weighs words that came while the agent spoke.
func (m *Machine) beside(e Event) []Action {
	words := normal(m.turnText())
	if len(words) == 0 {
		if m.state == Paused && !m.voiced && e.Finalized && m.asked == 0 {
			return m.resume("no_words")
		}
		return nil
	}
	switch {
	case m.greeting && (m.state == Speaking || m.policy.Uninterruptible):
		return nil // a hello does not stop the greeting; a voice that goes on does
	case m.sounds(words, e):
		return m.echoed()
	case !backchannel(words):
		return m.wanted(e)
	case m.voiced || !e.Final:
		return nil // it may be the beginning of more
	default:
		return m.noteAndResume(e.At)
	}
}

// wanted is told of words beside the agent's speech that want the floor.
func (m *Machine) wanted(e Event) []Action {
	if m.state == Speaking && !e.Final && !m.voiced {
		return nil // faint, and it may change
	}
	return m.content(e)
}

// sounds tells that words are the agent's own. Where the line is not known to
// return sound, they must be whole.
func (m *Machine) sounds(words []string, e Event) bool {
	if e.Returns {
		return echo(words, m.saying, 1)
	}
	said := normal(m.saying)
	for i, w := range words {
		last := i == len(words)-1 && len(said) > 0 && strings.HasPrefix(said[len(said)-1], w)
		if !last && !slices.Contains(said, w) {
			return false
		}
	}
	return true
}

// echoed takes the agent's own words for what they are.
func (m *Machine) echoed() []Action {
	m.text, m.partial = nil, ""
	if m.state == Paused && (m.lull || !m.voiced) {
		return m.resume("echo")
	}
	return nil
}

// content gives the floor to a caller whose words want it.
func (m *Machine) content(e Event) []Action {
	var acts []Action
	switch {
	case m.merging && !m.whole:
		acts = m.retract(e.At, "caller_resumed")
	case m.answering != "" && m.late() && m.mayMerge(e): // they belong to what is answered
		acts = m.retract(e.At, "words_heard")
	default:
		acts = m.yield(e.At, "words_heard")
	}
	if m.voiced {
		return acts
	}
	if m.asked > 0 {
		m.state, m.closing = Closing, m.lastEnd
		return append(acts, m.close(e.At)...)
	}
	return append(acts, m.missed(e.At)...)
}

// noteAndResume records a listener's word, and goes on.
func (m *Machine) noteAndResume(at time.Duration) []Action {
	acts := m.note(at)
	if m.state == Paused {
		return append(acts, m.resume("backchannel")...)
	}
	return append(acts, m.unduck("backchannel")...)
}

// note records what the caller said beside the agent's speech.
func (m *Machine) note(at time.Duration) []Action {
	m.noted, m.notedAt = m.turnText(), m.lastEnd
	m.text, m.partial = nil, ""
	m.settle()
	return []Action{{Do: Note, Text: m.noted, Reason: "backchannel", From: m.lastEnd, At: at}}
}

// resume goes on with what was paused.
func (m *Machine) resume(reason string) []Action {
	m.state, m.merging, m.ducked = Speaking, false, false
	m.text, m.partial = nil, ""
	return append([]Action{{Do: Resume, Reason: reason}, m.wake(0)}, m.release()...)
}
