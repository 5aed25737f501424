package turn

import (
	"slices"
	"strings"
	"time"
)

// A State is who has the floor.
type State string

// States.
const (
	Listening State = "listening" // nobody speaks
	Hearing   State = "hearing"   // the caller speaks
	Closing   State = "closing"   // the caller fell silent; has the turn ended?
	Thinking  State = "thinking"  // an answer is being made, nothing is audible yet
	Speaking  State = "speaking"  // the agent speaks
	Paused    State = "paused"    // the agent fell silent in the middle: does the caller want the floor?
	Held      State = "held"      // the agent may not speak: nobody it is to talk to is there, or it is not known
)

// A Machine holds the turn of one call.
type Machine struct {
	policy Policy
	state  State

	// What the caller is saying.
	stirred  bool          // there is sound that may become a voice
	voiced   bool          // there is a voice right now
	sounding bool          // the voice detector says so, be it believed or not
	loud     time.Duration // voiced sound since that began
	most     time.Duration // the same of the longest stretch that the recognizer did not answer for yet
	lull     bool          // the voice paused, or fell silent
	lastEnd  time.Duration // the last voiced sample
	text     []string      // final stretches of this turn
	partial  string        // what may still change
	partials bool          // the recognizer tells words before it is asked
	mute     bool          // it does not
	until    time.Duration // the end of what was understood; 0 where unknown
	usable   time.Duration // when text became what it is
	eot      float64       // the recognizer's own guess of the end, 0 where it has none
	keys     string        // that were pressed in this turn
	keyed    time.Duration // when the last of them was
	asked    int           // Finalizes that are not answered
	unpaid   int           // those before them that are not waited for: their answers come first
	owed     bool          // the recognizer did not answer in time: words may still come
	again    bool          // one broke that was asked about a sound beside the agent's speech
	reopened time.Duration // when a recognizer was open again
	settled  time.Duration // where the caller's speech ended that was answered last
	told     time.Duration // words that were said before it are answered, or excused
	hearFrom time.Duration // when speech began, or words last came
	closing  time.Duration // from when an answer to Finalize is waited for
	tone     Event         // whose prosody is that of the last speech
	judge    judgement
	onset    time.Duration // when the voice began
	pauses   time.Duration // how long the caller pauses and then goes on, on average
	cutOffs  int           // answers heard in the middle of a caller's sentence, as far as they are not forgiven
	clean    int           // turns without one since the last

	// What the agent is answering.
	answering string        // the caller's text; empty for a speech of the agent's own
	answered  string        // the keys that were answered with it
	fragments int           // commits that were retracted before this one
	commit    time.Duration // when the answer was asked for
	begun     bool          // it was begun before that
	pending   bool          // the answer is not audible yet
	ready     bool          // its first sound is made
	released  bool          // and may be heard
	doubt     time.Duration // until when a sound while thinking is waited to be understood
	filled    bool          // a filler was said for it
	greeting  bool          // the agent's first words are not over
	broken    bool          // they cannot be said
	audibleAt time.Duration // when the answer began to be heard
	ducked    bool
	merging   bool          // a pause that takes the answer back, where the caller does go on
	saying    string        // what the agent said last
	whole     bool          // all of it was heard
	noted     string        // what the caller said beside it
	notedAt   time.Duration // when that ended
	spec      string        // normal text of the answer that is held
	specs     int           // answers begun for this turn before its commit
	question  string        // what the agent said before this turn
	quietAt   time.Duration // when it fell silent

	idleAt   time.Duration // when both sides have been silent for too long
	nudges   int
	failures int
}

// New returns a machine. greeting tells whether the agent begins.
func New(p Policy, greeting bool) *Machine {
	m := &Machine{policy: p, state: Listening, idleAt: p.Idle}
	if greeting {
		m.state, m.pending, m.greeting = Thinking, true, true
	}
	if p.Held {
		m.state, m.pending = Held, false
	}
	return m
}

// Start says what to do before the first event.
func (m *Machine) Start() []Action {
	switch {
	case m.state == Held:
		return []Action{m.wake(0)}
	case m.greeting:
		return []Action{m.wake(m.policy.Filler)}
	default:
		return []Action{m.wake(m.idleAt)}
	}
}

// Settled is when the caller's words were last answered: what was said before
// it is of no account any more.
func (m *Machine) Settled() time.Duration { return m.told }

// State tells who has the floor.
func (m *Machine) State() State { return m.state }

// Step takes an event and says what to do.
func (m *Machine) Step(e Event) []Action {
	if e.Saying != "" {
		m.saying, m.whole = e.Saying, e.Whole
	}
	if m.state == Held {
		return m.held(e)
	}
	switch e.Kind {
	case Stirred, Calmed, Voice, Loud, Lull, Silence:
		return m.sound(e)
	case Heard:
		return m.heard(e)
	case Judged:
		return m.judged(e)
	case Key:
		return m.key(e)
	case Deaf:
		return m.deaf()
	case Listens:
		return m.listens(e)
	case Timer:
		return m.timer(e)
	case Ready:
		return m.made(e)
	case Audible:
		return m.audible(e)
	case Said:
		return m.said(e)
	case ReplyFail:
		return m.replyFail(e)
	case Own, Hold, Floor:
		return m.ordered(e)
	}
	return nil
}

// deaf is told that nobody will answer what the recognizer was asked. A turn
// that is closing is asked about anew.
func (m *Machine) deaf() []Action {
	m.asked, m.unpaid, m.partial = min(m.asked, 1), 0, ""
	if m.state != Closing {
		m.again = m.again || m.asked > 0
		m.asked = 0
	}
	return nil
}

// ordered is told what others have decided about the agent.
func (m *Machine) ordered(e Event) []Action {
	switch e.Kind {
	case Own:
		return m.speak(Action{}, e.At)[1:]
	case Hold:
		return m.hold(e)
	default: // the floor is its own already
		return nil
	}
}

// sound is told what the voice detector hears.
func (m *Machine) sound(e Event) []Action {
	switch e.Kind {
	case Stirred:
		m.stirred, m.lull = true, false
		return m.stir()
	case Calmed:
		m.stirred = false
		return m.calm(e.At)
	case Voice:
		return m.voice(e)
	case Loud:
		m.loud, m.most, m.lull = e.For, max(m.most, e.For), false
		return m.sustained(e.At)
	case Lull:
		m.lull, m.lastEnd, m.stirred = true, e.From, false
		m.toned(e)
		return m.speculate()
	default:
		return m.silence(e)
	}
}

func (m *Machine) toned(e Event) {
	if e.Toned {
		m.tone = e
	}
}

func (m *Machine) voice(e Event) []Action {
	m.voiced, m.sounding, m.loud, m.stirred, m.lull, m.onset = true, true, 0, true, false, e.From
	if m.state == Closing {
		m.paused(m.lastEnd)
	}
	switch m.state {
	case Listening, Closing:
		return []Action{m.hear(e.At)}
	case Speaking:
		return m.spokenInto(e)
	case Paused:
		return []Action{m.wake(e.At + m.policy.Wordless)}
	case Thinking, Hearing, Held:
	}
	return nil
}

// paused notes for how long the caller paused, since, before going on.
func (m *Machine) paused(since time.Duration) {
	gap := m.onset - since
	if since == 0 || gap < shortPause || gap > longPause {
		return
	}
	if m.pauses == 0 {
		m.pauses = gap
	}
	m.pauses += (gap - m.pauses) / 3
}

// wasCutOff notes that the caller was spoken over in the middle of a sentence.
func (m *Machine) wasCutOff() {
	m.cutOffs, m.clean = min(m.cutOffs+1, mostCutOffs), -1 // the turn that is to come is not clean
	m.paused(m.settled)
}

// hear gives the caller the floor. Speech that brings no words for a while is
// none: a noisy line must not keep the agent silent for ever.
func (m *Machine) hear(at time.Duration) Action {
	m.state, m.hearFrom = Hearing, at
	return m.wake(at + m.hearing())
}

// hearing is how long the caller keeps the floor without a new word: longer with
// a recognizer that tells none before it is asked. Where the energy gate hears
// nothing, the words alone tell.
func (m *Machine) hearing() time.Duration {
	switch {
	case m.voiced && m.mute:
		return patientDeaf * m.policy.Wordless
	case m.voiced:
		return m.policy.Wordless
	default:
		return m.policy.Wordless / 3
	}
}

func (m *Machine) silence(e Event) []Action {
	spoke := m.sounding
	m.voiced, m.sounding, m.stirred, m.lull = false, false, false, true
	m.lastEnd = e.From
	m.toned(e)
	switch m.state {
	case Hearing:
		return m.finalize(e.At, m.lastEnd, "silence")
	case Thinking, Speaking, Paused:
		return m.soundOver(e.At)
	case Held:
		m.asked++
		return []Action{{Do: Finalize, Reason: "silence"}}
	case Closing: // closed for want of words, in the middle of the sound
		return m.finalize(e.At, m.lastEnd, "silence")
	case Listening:
		if spoke { // of a sound of which its beginning was no words
			return m.finalize(e.At, m.lastEnd, "silence")
		}
	}
	return nil
}

func (m *Machine) finalize(at, since time.Duration, reason string) []Action {
	m.state, m.closing = Closing, since
	m.asked++
	acts := append([]Action{{Do: Finalize, Reason: reason}}, m.speculate()...)
	return append(acts, m.close(at)...)
}

// listens is told that a recognizer is open in place of one that broke. It was
// told what the broken one did not finish; its end is asked for again.
func (m *Machine) listens(e Event) []Action {
	m.reopened, m.mute, m.partials = e.At, e.Mute, m.partials && !e.Mute
	again := m.again && m.state != Hearing // whose end is asked for when it comes
	if m.again = false; again && m.asked == 0 {
		m.asked = 1
	} else if m.asked == 0 || m.state != Closing && m.state != Held {
		return nil
	}
	return []Action{{Do: Finalize, Reason: "recognizer_reopened"}}
}

func (m *Machine) timer(e Event) []Action {
	switch m.state {
	case Closing:
		return m.close(e.At)
	case Thinking:
		return m.waited(e.At)
	case Listening:
		if m.nudges++; m.nudges > m.policy.Nudges {
			return []Action{{Do: Leave, Reason: "inactivity"}}
		}
		return m.speak(Action{Do: Nudge, Reason: "idle"}, e.At)
	case Hearing:
		m.lastEnd, m.voiced, m.stirred, m.lull = m.hearFrom, false, false, true // whatever goes on, it is no speech
		return m.finalize(e.At, e.At, "no_more_words")
	case Paused:
		if backchannel(normal(m.turnText())) {
			return m.noteAndResume(e.At)
		}
		return m.resume("no_words")
	case Speaking, Held:
	}
	return nil
}

// turnText is what the caller said in this turn so far.
func (m *Machine) turnText() string {
	return strings.TrimSpace(strings.Join(append(slices.Clip(m.text), m.partial), " "))
}

// wake sets the timer; 0 takes it away.
func (m *Machine) wake(at time.Duration) Action { return Action{Do: SetTimer, At: at} }
