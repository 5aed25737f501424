// Package amd detects who answered a call: a person or a kind of machine. It decides by the timing of the first
// speech, the words, tones and optionally a model's opinion. It is pure: times come with the events, and a timer is
// an event too.
package amd

import (
	"strings"
	"time"
)

// A Party is the party that answered.
type Party uint8

// Parties.
const (
	Unknown Party = iota
	Human
	Voicemail
	IVR       // a menu or an announcement
	Screening // a call screening assistant
	Fax
)

// AnsweredBy returns the party as in the answered_by field. A screening assistant is reported as "ivr", because the
// agent talks with it.
func (p Party) AnsweredBy() string {
	switch p {
	case Human:
		return "human"
	case Voicemail:
		return "voicemail"
	case IVR, Screening:
		return "ivr"
	case Fax:
		return "fax"
	default:
		return "unknown"
	}
}

// A Verdict is the decision so far and its reason.
type Verdict struct {
	Party      Party
	Confidence float64       // 0 to 1
	Evidence   string        // such as "short_greeting", "phrase: after the tone" or "beep"
	Elapsed    time.Duration // time from the answer to the decision for Party; reported as amd_ms
}

// phraseEvidence starts the evidence of a verdict by words.
const phraseEvidence = "phrase: "

// ByWords reports whether the decision is due to a phrase.
func (v Verdict) ByWords() bool { return strings.HasPrefix(v.Evidence, phraseEvidence) }

// A Kind is the kind of an event.
type Kind uint8

// Kinds of events.
const (
	Voice      Kind = iota // speech begins at From
	Silence                // speech ends at From
	Transcript             // Text is the whole transcript so far
	Tone                   // Signal was detected and ended at From
	Opinion                // a model decided for Party with Confidence
	Timer                  // the time that a Wake requested has come
)

// An Event is an observation. At is when it was detected, and From when it occurred. Both count from the answer.
type Event struct {
	Kind       Kind
	At, From   time.Duration
	Text       string
	Signal     Signal
	Party      Party
	Confidence float64
}

// An ActionKind is the kind of an action.
type ActionKind uint8

// Kinds of actions.
const (
	Wake   ActionKind = iota // send a Timer at At
	Decide                   // the verdict has changed
	Speak                    // the agent may speak: greet a human, leave a message, or answer a machine
	Yield                    // the agent must stop, because it greeted a machine as a human
)

// An Action is a step for the caller of the machine.
type Action struct {
	Do      ActionKind
	At      time.Duration // only of a Wake
	Verdict Verdict       // only of the other kinds
}

// Limits of times and durations.
const (
	shortGreeting = 1800 * time.Millisecond // longest first words of a person
	humanSilence  = 350 * time.Millisecond  // silence of a person after the first words
	longSilence   = 550 * time.Millisecond  // silence of a person after longer first words
	longGreeting  = 6 * time.Second         // longest speech of a person; longer speech is a machine's
	machineOver   = 2 * time.Second         // silence of a machine after which no beep is expected
	menuOver      = time.Second             // silence of a menu after which it waits for input
	noSpeech      = 1500 * time.Millisecond // silence from the answer on without any speech
	giveUp        = 20 * time.Second        // maximum time to a verdict
	overdue       = time.Minute             // maximum time to the end of a machine's greeting
)

// A Machine decides about one call. The zero value is ready to use. Its first event, which
// may be a Timer at 0, starts the call.
type Machine struct {
	verdict     Verdict
	decided     bool
	speechEnd   time.Duration // end of the last speech
	speechTime  time.Duration // total speech
	speechStart time.Duration // start of the current speech
	speaking    bool
	hasSpeech   bool // speech has occurred
	afterBeep   bool // a beep followed the last speech
	hasWords    bool // words were recognized
	maySpeak    bool // the agent may speak: Speak was the last of the Speak and Yield actions
	started     bool
}

// Verdict returns the current verdict.
func (m *Machine) Verdict() Verdict { return m.verdict }

// Step processes an event and returns the actions.
func (m *Machine) Step(e Event) []Action {
	var acts []Action
	if !m.started {
		m.started = true
		acts = append(acts, Action{Do: Wake, At: noSpeech}, Action{Do: Wake, At: giveUp}, Action{Do: Wake, At: overdue})
	}
	switch e.Kind {
	case Voice:
		m.hasSpeech, m.speaking, m.speechStart, m.afterBeep = true, true, e.From, false
		acts = append(acts, Action{Do: Wake, At: e.From + max(0, longGreeting-m.speechTime)})
	case Silence:
		if m.speaking {
			m.speechTime += max(0, e.From-m.speechStart)
		}
		m.speaking, m.speechEnd = false, e.From
		for _, d := range []time.Duration{humanSilence, longSilence, menuOver, machineOver} {
			acts = append(acts, Action{Do: Wake, At: e.From + d})
		}
	case Transcript:
		acts = m.onTranscript(acts, e)
	case Tone:
		acts = m.tone(acts, e)
	case Opinion:
		if e.Party != Unknown && e.Confidence > 0 { // otherwise the model did not decide
			acts = m.decide(acts, e.At, e.Party, min(e.Confidence, 0.94), "model")
		}
	case Timer:
	}
	return m.timing(acts, e.At)
}

func (m *Machine) onTranscript(acts []Action, e Event) []Action {
	m.hasWords = m.hasWords || e.Text != ""
	waited := m.decided && (m.verdict.Party == Human || m.verdict.Party == Unknown)
	p, confidence, phrase := matchText(e.Text, waited)
	switch {
	case p != Unknown:
		return m.decide(acts, e.At, p, confidence, phraseEvidence+phrase)
	case m.isTentative(): // the recognizer has corrected its words
		m.decided, m.verdict = false, Verdict{}
	}
	return acts
}

func (m *Machine) tone(acts []Action, e Event) []Action {
	switch {
	case e.Signal == Called, e.Signal == Calling && !m.hasWords && m.speechTime < shortGreeting:
		return m.decide(acts, e.At, Fax, 0.98, e.Signal.String())
	case e.Signal == Special, e.Signal == Busy:
		return m.decide(acts, e.At, Unknown, 0.96, e.Signal.String())
	case (e.Signal == Beep || e.Signal == Calling) && (m.hasSpeech || m.verdict.Party == Voicemail) && m.verdict.Party != Fax:
		acts = m.decide(acts, e.At, Voicemail, 0.97, "beep")
		m.speaking, m.speechEnd, m.afterBeep, m.maySpeak = false, e.From, true, true
		return append(acts, Action{Do: Speak, Verdict: m.verdict})
	default:
		return acts
	}
}

// isTentative reports whether the verdict is due to words that people may say too.
func (m *Machine) isTentative() bool { return m.verdict.ByWords() && m.verdict.Confidence <= possible }

// timing draws conclusions from the elapsed time.
func (m *Machine) timing(acts []Action, now time.Duration) []Action {
	said, still := m.speechTime, now-m.speechEnd
	if m.speaking {
		said, still = said+max(0, now-m.speechStart), -1
	}
	if !m.decided {
		acts = m.guess(acts, now, said, still)
	} else if m.isTentative() && still >= menuOver {
		acts = m.decide(acts, now, Human, 0.8, "greeting_over") // a machine would have said more
	} else if m.verdict.Evidence == noSpeechEvidence && m.hasSpeech && !m.speaking {
		acts = m.onLateSpeech(acts, now, said, still)
	}
	if m.decided && (m.isWaiting(still) || m.isOverdue(now)) {
		acts = m.speak(acts)
	}
	return acts
}

// noSpeechEvidence is the evidence of a call without speech.
const noSpeechEvidence = "no_speech"

// onLateSpeech decides for a person if the party says few words after the agent began to speak, and then falls
// silent. Longer speech proves nothing, because it answers the agent.
func (m *Machine) onLateSpeech(acts []Action, now, said, still time.Duration) []Action {
	if said > shortGreeting || still < humanSilence {
		return acts
	}
	return m.decide(acts, now, Human, 0.8, "short_greeting")
}

// guess decides by time alone: by the amount of speech, and by the silence after it, which is
// negative during speech.
func (m *Machine) guess(acts []Action, now, said, still time.Duration) []Action {
	switch {
	case !m.hasSpeech && now >= noSpeech:
		return m.speak(m.decide(acts, now, Unknown, 0.5, noSpeechEvidence))
	case !m.hasSpeech:
		return acts
	case said >= longGreeting:
		return m.decide(acts, now, Voicemail, 0.7, "long_greeting")
	case said <= shortGreeting && still >= humanSilence:
		return m.decide(acts, now, Human, 0.8, "short_greeting")
	case still >= longSilence:
		return m.decide(acts, now, Human, 0.6, "greeting_over")
	case now >= giveUp:
		return m.speak(m.decide(acts, now, Unknown, 0.5, "gave_up"))
	default:
		return acts
	}
}

// isWaiting reports whether the party has been silent long enough to be waiting.
func (m *Machine) isWaiting(still time.Duration) bool {
	if !m.hasSpeech {
		return false
	}
	switch m.verdict.Party {
	case Human:
		return still >= humanSilence
	case Voicemail:
		return still >= machineOver
	case IVR, Screening:
		return still >= menuOver
	default:
		return false
	}
}

// isOverdue reports whether the agent has waited too long for the end of the party's speech, for example because the
// voice is too faint to detect. It is false after a fax or network tone, because then nobody is on the line.
func (m *Machine) isOverdue(now time.Duration) bool {
	if m.verdict.Party == Fax || m.verdict.Party == Unknown && m.verdict.Confidence > 0.9 {
		return false
	}
	return now >= overdue || !m.hasSpeech && now >= giveUp
}

func (m *Machine) speak(acts []Action) []Action {
	if m.maySpeak {
		return acts
	}
	m.maySpeak = true
	return append(acts, Action{Do: Speak, Verdict: m.verdict})
}

// decide accepts a verdict if it is more confident than the last one. If the agent has greeted a machine as a human,
// it must yield, unless the beep has sounded.
func (m *Machine) decide(acts []Action, now time.Duration, p Party, confidence float64, evidence string) []Action {
	if m.decided && confidence <= m.verdict.Confidence {
		return acts
	}
	was := m.verdict
	first := !m.decided || was.Party != p
	m.decided = true
	m.verdict = Verdict{p, confidence, evidence, now}
	if !first {
		m.verdict.Elapsed = was.Elapsed
	}
	acts = append(acts, Action{Do: Decide, Verdict: m.verdict})
	if m.maySpeak && first && p != Human && !m.afterBeep {
		m.maySpeak = false
		acts = append(acts, Action{Do: Yield, Verdict: m.verdict})
	}
	return acts
}
