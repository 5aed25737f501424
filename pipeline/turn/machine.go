package turn

import (
	"time"

	"github.com/parley-voice/parley/pipeline/eot"
)

// A State says who has the floor.
type State string

// States.
const (
	Listening State = "listening" // both sides are silent
	Hearing   State = "hearing"   // the caller speaks
	Closing   State = "closing"   // the caller fell silent; the turn may have ended
	Thinking  State = "thinking"  // an answer is being prepared and is not audible yet
	Speaking  State = "speaking"  // the agent speaks
	Paused    State = "paused"    // the agent paused because the caller may want the floor
	Held      State = "held"      // the agent may not speak before the next Floor
)

// A Machine combines the states of the caller, the recognizer and the agent of one call.
type Machine struct {
	policy     Policy
	state      State
	caller     caller
	recognizer recognizer
	endpointer endpointer
	agent      agent

	hearingSince time.Duration // when speech began, or when words last came
	idleAt       time.Duration // when both sides have been silent for too long
	nudges       int
	failures     int
}

// New returns a machine. greeting means that the agent speaks first.
func New(p Policy, greeting bool) *Machine {
	m := &Machine{policy: p, state: Listening, idleAt: p.Idle}
	m.recognizer.policy, m.endpointer.policy, m.agent.policy = &m.policy, &m.policy, &m.policy
	if greeting {
		m.state, m.agent.pending, m.agent.greeting = Thinking, true, true
	}
	if p.Held {
		m.state, m.agent.pending = Held, false
	}
	return m
}

// Start returns the actions before the first event.
func (m *Machine) Start() []Action {
	switch {
	case m.state == Held:
		return []Action{wake(0)}
	case m.agent.greeting:
		return []Action{wake(m.policy.Filler)}
	default:
		return []Action{wake(m.idleAt)}
	}
}

// Settled returns the time before which all of the caller's words are answered.
func (m *Machine) Settled() time.Duration { return m.recognizer.doneUntil }

// State returns who has the floor.
func (m *Machine) State() State { return m.state }

// Pause describes the pause after text, for a classifier.
func (m *Machine) Pause(text string) eot.Pause { return m.endpointer.pause(text) }

// Step takes an event and returns the actions that follow from it.
func (m *Machine) Step(e Event) []Action {
	if e.AgentText != "" {
		m.agent.saying, m.agent.whole = e.AgentText, e.AllHeard
	}
	if m.state == Held {
		return m.onHeld(e)
	}
	switch e.Kind {
	case SoundStart, SoundEnd, Voice, VoiceLength, Lull, Silence:
		return m.onSound(e)
	case Transcript:
		return m.onTranscript(e)
	case Classified:
		if m.endpointer.onJudgment(e) && m.state == Closing {
			return append(m.speculate(mayHaveFinished), m.close(e.At)...)
		}
	case Key, Typed:
		return m.onInput(e)
	case RecognizerLost:
		m.recognizer.onFailure(m.state)
	case RecognizerOpen:
		return m.recognizer.onOpen(e, m.state)
	case Timer:
		return m.onTimer(e)
	case Ready, SpeechStart, SpeechEnd, ReplyFailed, OwnSpeech, Hold, Floor:
		return m.onAgent(e)
	}
	return nil
}

// wake sets the timer; 0 stops it.
func wake(at time.Duration) Action { return Action{Do: SetTimer, At: at} }

func (m *Machine) onSound(e Event) []Action {
	switch e.Kind {
	case SoundStart:
		m.caller.sound, m.caller.lull = true, false
		return m.agent.duck(m.state)
	case SoundEnd:
		m.caller.sound = false
		switch m.state {
		case Speaking:
			return m.agent.unduck("no_voice")
		case Thinking:
			return m.agent.release(m.state, &m.caller)
		case Closing:
			return m.close(e.At)
		case Listening, Hearing, Paused, Held:
		}
		return nil
	case Voice:
		return m.onVoice(e)
	case VoiceLength:
		m.caller.loud, m.caller.lull = e.Length, false
		m.recognizer.longest = max(m.recognizer.longest, e.Length)
		return m.onLongVoice(e.At)
	case Lull:
		m.caller.onLull(e)
		m.endpointer.onProsody(e)
		return m.speculate(mayHaveFinished)
	default:
		return m.onSilence(e)
	}
}

func (m *Machine) onVoice(e Event) []Action {
	m.caller.onVoice(e)
	switch m.state {
	case Closing:
		m.endpointer.onPause(m.caller.lastEnd, m.caller.onset)
		return []Action{m.hear(e.At)}
	case Listening:
		return []Action{m.hear(e.At)}
	case Speaking:
		return m.onVoiceOverSpeech(e)
	case Paused:
		return []Action{wake(e.At + m.policy.Wordless)}
	case Thinking, Hearing, Held:
	}
	return nil
}

// hear gives the caller the floor and sets the timer that ends it if no new words come, because a noisy line must not
// silence the agent forever. A recognizer that sends only final text gets more time. A sound without voice gets less.
func (m *Machine) hear(at time.Duration) Action {
	m.state, m.hearingSince = Hearing, at
	switch {
	case m.caller.voiced && m.recognizer.finalOnly:
		return wake(at + patientDeaf*m.policy.Wordless)
	case m.caller.voiced:
		return wake(at + m.policy.Wordless)
	default:
		return wake(at + m.policy.Wordless/3)
	}
}

func (m *Machine) onSilence(e Event) []Action {
	spoke := m.caller.detected
	m.caller.onSilence(e)
	m.endpointer.onProsody(e)
	switch m.state {
	case Hearing, Closing: // in Closing, the wait for words ended in the middle of the sound
		return m.finalize(e.At, m.caller.lastEnd, "silence")
	case Thinking, Speaking, Paused:
		return m.onSoundEnd(e.At)
	case Held:
		m.recognizer.asked++
		return []Action{{Do: Finalize, Reason: "silence"}}
	case Listening:
		if spoke { // the machine took the voice for noise, because it brought no words
			return m.finalize(e.At, m.caller.lastEnd, "silence")
		}
	}
	return nil
}

func (m *Machine) finalize(at, since time.Duration, reason string) []Action {
	m.state, m.recognizer.closing = Closing, since
	m.recognizer.asked++
	acts := append([]Action{{Do: Finalize, Reason: reason}}, m.speculate(mayHaveFinished)...)
	return append(acts, m.close(at)...)
}

func (m *Machine) onTimer(e Event) []Action {
	switch m.state {
	case Closing:
		return m.close(e.At)
	case Thinking:
		return m.onLongThinking(e.At)
	case Listening:
		if m.nudges++; m.nudges > m.policy.Nudges {
			return []Action{{Do: Leave, Reason: "inactivity"}}
		}
		m.state = Thinking
		return m.agent.speak(Action{Do: Nudge, Reason: "idle"}, e.At)
	case Hearing:
		c := &m.caller
		c.lastEnd, c.voiced, c.sound, c.lull = m.hearingSince, false, false, true // the sound was only noise
		return m.finalize(e.At, e.At, "no_more_words")
	case Paused:
		if backchannel(normal(m.recognizer.words())) {
			return append(m.agent.note(e.At, &m.recognizer, &m.caller), m.resume("backchannel")...)
		}
		return m.resume("no_words")
	case Speaking, Held:
	}
	return nil
}

// maxTyped is the maximum length in bytes of the caller's words in a turn with typed words. Further typed words are
// dropped.
const maxTyped = 8000

func (m *Machine) isTooLong(e Event) bool {
	return e.Kind == Typed && len(m.agent.text)+len(m.recognizer.words())+len(m.caller.typed)+len(e.Text) > maxTyped
}

// onInput handles a key or typed words. Both end the agent's speech.
func (m *Machine) onInput(e Event) []Action {
	if m.isTooLong(e) {
		return nil
	}
	var acts []Action
	c, reason := &m.caller, "key_pressed"
	if e.Kind == Typed {
		reason = "words_typed"
	}
	switch m.state {
	case Speaking, Paused:
		if !m.agent.isUninterruptible() {
			acts = m.yield(e.At, reason)
		}
	case Thinking:
		if m.agent.answersCaller() {
			acts = m.retract(e.At, reason)
		}
	case Listening, Hearing, Closing, Held:
	}
	if e.Kind == Typed {
		c.onTyped(e)
	} else {
		c.onKey(e)
	}
	if m.state == Speaking || m.state == Paused || m.state == Thinking || c.voiced {
		return acts // the input is answered together with the caller's words, or after the agent's speech
	}
	c.lull, c.lastEnd = true, max(c.lastEnd, e.At)
	m.state, m.recognizer.usable = Closing, e.At
	return append(acts, m.close(e.At)...)
}
