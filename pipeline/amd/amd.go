// Package amd tells who answered a call: a person, or a machine, and which. It
// weighs the timing of what is said first, the words, tones on the line and,
// where there is one, a model's opinion, all at once and as they come. It is
// pure: the clock is the caller's, and timers come in as events.
package amd

import "time"

// A Party is who answered.
type Party uint8

// Parties.
const (
	Unknown Party = iota
	Human
	Voicemail
	IVR       // a menu, or an announcement
	Screening // an assistant that asks who calls before it puts through
	Fax
)

// AnsweredBy is the party as a call's answered_by has it. An assistant that
// screens is a machine one talks with, as a menu is.
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

// A Verdict is who is believed to have answered, and why.
type Verdict struct {
	Party      Party
	Confidence float64       // 0 to 1
	Evidence   string        // "short_greeting", "phrase: after the tone", "beep", …
	Elapsed    time.Duration // since the answer: amd_ms
}

// A Kind is the kind of an event.
type Kind uint8

// Kinds of events.
const (
	Voice   Kind = iota // somebody begins to speak, at From
	Silence             // and stops, at From
	Heard               // Text is all that was understood so far
	Tone                // Signal came, and ended at From
	Opinion             // a model says that Party answered, with Confidence
	Timer               // the time a Wake asked for
)

// An Event is something that happened. At is when it was noticed, From when it
// was, both since the answer.
type Event struct {
	Kind       Kind
	At, From   time.Duration
	Text       string
	Signal     Signal
	Party      Party
	Confidence float64
}

// A Deed is the kind of an action.
type Deed uint8

// Deeds.
const (
	Wake   Deed = iota // send a Timer at At
	Decide             // Verdict is the verdict now
	Speak              // the line is the agent's: to greet a human, to leave a message, to answer a machine
	Yield              // stop: what spoke as to a human talks to a machine
)

// An Action is what is to be done.
type Action struct {
	Do      Deed
	At      time.Duration // of a Wake
	Verdict Verdict       // of the others
}

// Times.
const (
	shortGreeting = 1800 * time.Millisecond // a person's first words are not longer
	humanSilence  = 350 * time.Millisecond  // and then the person waits
	longSilence   = 550 * time.Millisecond  // the same after more words
	longGreeting  = 6 * time.Second         // of speech: nobody but a machine
	machineOver   = 2 * time.Second         // of silence: no beep will come
	menuOver      = time.Second             // of silence: a menu waits
	noSpeech      = 1500 * time.Millisecond // of silence after the answer
	giveUp        = 20 * time.Second        // without a verdict
	overdue       = time.Minute             // without an end of what a machine says
)

// A Machine decides about one call. Its zero value is ready; it is told of the
// answer by its first event, which may be a Timer at 0.
type Machine struct {
	verdict  Verdict
	decided  bool
	ended    time.Duration // of the last
	said     time.Duration // speech so far
	from     time.Duration // where the speech that is on began
	speaking bool
	spoken   bool // somebody has spoken
	tonal    bool // a beep ended after the last speech
	words    bool // something was understood
	may      bool // the agent was told to speak, and not to yield since
	woken    bool
}

// Verdict is the verdict now.
func (m *Machine) Verdict() Verdict { return m.verdict }

// Step takes an event and says what is to be done.
func (m *Machine) Step(e Event) []Action {
	var acts []Action
	if !m.woken {
		m.woken = true
		acts = append(acts, Action{Do: Wake, At: noSpeech}, Action{Do: Wake, At: giveUp}, Action{Do: Wake, At: overdue})
	}
	switch e.Kind {
	case Voice:
		m.spoken, m.speaking, m.from, m.tonal = true, true, e.From, false
		acts = append(acts, Action{Do: Wake, At: e.From + max(0, longGreeting-m.said)})
	case Silence:
		if m.speaking {
			m.said += max(0, e.From-m.from)
		}
		m.speaking, m.ended = false, e.From
		for _, d := range []time.Duration{humanSilence, longSilence, menuOver, machineOver} {
			acts = append(acts, Action{Do: Wake, At: e.From + d})
		}
	case Heard:
		m.words = m.words || e.Text != ""
		if p, phrase := read(e.Text); p != Unknown {
			acts = m.decide(acts, e.At, p, 0.95, "phrase: "+phrase)
		} else if hint := hints(e.Text); hint != "" {
			acts = m.decide(acts, e.At, Voicemail, 0.85, "phrase: "+hint)
		}
	case Tone:
		acts = m.tone(acts, e)
	case Opinion:
		if e.Party != Unknown && e.Confidence > 0 { // else it is none
			acts = m.decide(acts, e.At, e.Party, min(e.Confidence, 0.94), "model")
		}
	case Timer:
	}
	return m.timing(acts, e.At)
}

// tone weighs a signal.
func (m *Machine) tone(acts []Action, e Event) []Action {
	switch {
	case e.Signal == Called, e.Signal == Calling && !m.words && m.said < shortGreeting:
		return m.decide(acts, e.At, Fax, 0.98, e.Signal.String())
	case e.Signal == Special, e.Signal == Engaged:
		return m.decide(acts, e.At, Unknown, 0.96, e.Signal.String())
	case (e.Signal == Beep || e.Signal == Calling) && (m.spoken || m.verdict.Party == Voicemail) && m.verdict.Party != Fax:
		acts = m.decide(acts, e.At, Voicemail, 0.97, "beep")
		m.speaking, m.ended, m.tonal, m.may = false, e.From, true, true
		return append(acts, Action{Do: Speak, Verdict: m.verdict})
	default:
		return acts
	}
}

// timing draws what follows from the clock alone.
func (m *Machine) timing(acts []Action, now time.Duration) []Action {
	said, still := m.said, now-m.ended
	if m.speaking {
		said, still = said+max(0, now-m.from), -1
	}
	if !m.decided {
		acts = m.guess(acts, now, said, still)
	} else if m.verdict.Evidence == silent && m.spoken && !m.speaking {
		acts = m.late(acts, now, said, still)
	}
	if m.decided && (m.over(still) || m.waited(now)) {
		acts = m.speak(acts)
	}
	return acts
}

// silent is the evidence of a line on which nobody spoke.
const silent = "no_speech"

// late takes one who spoke after the agent did for a person, by a few words and
// silence. More words tell nothing: they answer the agent's.
func (m *Machine) late(acts []Action, now, said, still time.Duration) []Action {
	if said > shortGreeting || still < humanSilence {
		return acts
	}
	return m.decide(acts, now, Human, 0.8, "short_greeting")
}

// guess decides by the clock alone, while nothing else has: after so much
// speech, and so much silence behind it, negative while somebody speaks.
func (m *Machine) guess(acts []Action, now, said, still time.Duration) []Action {
	switch {
	case !m.spoken && now >= noSpeech:
		return m.speak(m.decide(acts, now, Unknown, 0.5, silent))
	case !m.spoken:
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

// over tells whether the party has been still for so long that it is waiting.
func (m *Machine) over(still time.Duration) bool {
	if !m.spoken {
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

// waited tells that the party's end was waited for long enough. Where a voice is
// too faint to be noticed there is none; where a tone told, nobody is there.
func (m *Machine) waited(now time.Duration) bool {
	if m.verdict.Party == Fax || m.verdict.Party == Unknown && m.verdict.Confidence > 0.9 {
		return false
	}
	return now >= overdue || !m.spoken && now >= giveUp
}

// speak gives the line to the agent.
func (m *Machine) speak(acts []Action) []Action {
	if m.may {
		return acts
	}
	m.may = true
	return append(acts, Action{Do: Speak, Verdict: m.verdict})
}

// decide takes a verdict, if it is surer than the one before. A machine taken
// for a human makes the agent yield, unless its beep was heard.
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
	if m.may && first && p != Human && !m.tonal {
		m.may = false
		acts = append(acts, Action{Do: Yield, Verdict: m.verdict})
	}
	return acts
}
