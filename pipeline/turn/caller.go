package turn

import (
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/eot"
)

// A judgement is what the classifier was asked and said.
type judgement struct {
	text  string        // normal text that was asked about
	asked time.Duration // when
	at    time.Duration // when the answer came; 0 where none did
	due   time.Duration // when the commit waited for it last; 0 where it did not
	p     float64
}

func (m *Machine) heard(e Event) []Action {
	text := strings.TrimSpace(e.Text)
	if e.From > 0 && e.From < m.told && text != "" {
		m.answers(e)
		return nil // it was answered already
	}
	if e.Unanswered && m.ignored() {
		if acts := m.ask(e.At, text); acts != nil {
			return acts
		}
	}
	if m.returned(e, text) {
		text = ""
	}
	m.take(e, text)
	switch m.state {
	case Closing:
		return append(m.speculate(), m.close(e.At)...)
	case Speaking, Paused:
		return m.beside(e)
	case Thinking:
		return m.meanwhile(e, text)
	case Hearing, Listening, Held:
	}
	if text == "" {
		return nil
	}
	return m.unexpected(e)
}

// unexpected is told of words that nobody was asked for.
func (m *Machine) unexpected(e Event) []Action {
	if e.Final && (m.state == Listening || m.state == Hearing && m.late()) {
		return m.missed(e.At)
	}
	return append([]Action{m.hear(e.At)}, m.speculate()...)
}

// ask has another recognizer asked about speech that this one does not answer
// for, where there is the time; else the caller is, where nothing is known of it.
func (m *Machine) ask(at time.Duration, text string) []Action {
	switch {
	case at+m.policy.Final <= m.closing+m.policy.Deaf:
		if text != "" { // the rest is told to the other
			m.text, m.partial = append(m.text, text), ""
		}
		return []Action{{Do: Reopen, Reason: RecognizerSilent}, m.wake(m.answerDue(""))}
	case text == "" && m.asked == 1 && m.unpaid == 0 && m.keys == "" && (m.turnText() == "" || m.behind()):
		return m.unheard(at)
	default:
		return nil
	}
}

// ignored tells that the caller said something just now of which nothing is
// understood: it lasted too long for a cough.
func (m *Machine) ignored() bool {
	nothing := m.turnText() == "" || m.behind() || m.until > 0 && m.until < m.lastEnd-m.policy.Insist
	return m.state == Closing && m.most >= m.policy.Insist && nothing
}

// returned tells that what was heard just after the agent's speech is the end of
// it, come back.
func (m *Machine) returned(e Event, text string) bool {
	return e.Returns && m.state != Speaking && m.state != Paused && e.From > 0 && e.From < m.quietAt+returnTime && echo(normal(text), m.saying, 1)
}

// answers counts a result that answers a Finalize.
func (m *Machine) answers(e Event) {
	m.owed = m.owed || e.Unanswered
	switch {
	case !e.Finalized:
	case m.unpaid > 0:
		m.unpaid--
	case m.asked > 0:
		m.asked--
	}
	if e.Finalized && !e.Unanswered && m.asked == 0 {
		m.most = 0
	}
}

// giveUp waits no longer for what the recognizer was asked.
func (m *Machine) giveUp() { m.unpaid, m.asked = m.unpaid+m.asked, 0 }

// unheard gives up a turn of which nothing was understood, and says so.
func (m *Machine) unheard(at time.Duration) []Action {
	m.giveUp()
	m.usable, m.settled, m.told, m.owed, m.most = at, m.lastEnd, m.lastEnd, false, 0
	return m.apologise(at, RecognizerSilent)
}

// take adds a result to the text of the turn.
func (m *Machine) take(e Event, text string) {
	m.answers(e)
	switch {
	case !e.Final:
		m.partial, m.partials = text, m.partials || text != ""
	case text != "":
		m.text, m.partial = append(m.text, text), ""
		m.mute = !m.partials
	default:
		m.partial = ""
	}
	m.usable, m.eot = e.At, e.P
	if e.Until > 0 && (text != "" || !e.Unanswered) {
		m.until = e.Until
	}
}

// meanwhile is told of words that came while the answer to others is made.
func (m *Machine) meanwhile(e Event, text string) []Action {
	words := normal(text)
	switch {
	case !m.answersCaller():
		return nil
	case backchannel(words) && e.Final && !m.voiced:
		m.doubt = 0
		return append(m.note(e.At), m.release()...)
	case len(words) > 0 && !backchannel(words) && (e.Final || m.voiced):
		return append(m.retract(e.At, "words_heard"), m.missed(e.At)...)
	case m.doubt > 0 && e.Finalized && m.asked == 0 && m.turnText() == "":
		m.doubt = 0 // the sound was no speech
		return m.release()
	default:
		return nil
	}
}

// missed takes words for a turn that come late, or whose sound the energy gate
// did not notice.
func (m *Machine) missed(at time.Duration) []Action {
	if m.voiced {
		return nil // the silence after it will tell
	}
	if !m.late() {
		m.lastEnd = max(m.lastEnd, at-patience(1))
	}
	m.state, m.lull = Closing, true
	return append(m.speculate(), m.close(at)...)
}

// late tells that what was understood last was said in speech that is over.
func (m *Machine) late() bool {
	return !m.voiced && m.until > 0 && m.until < m.lastEnd+m.policy.Insist
}

// key takes a key that the caller pressed. Keys end the agent's speech: whoever
// presses one has heard enough.
func (m *Machine) key(e Event) []Action {
	var acts []Action
	switch m.state {
	case Speaking, Paused:
		if m.deafToCaller() {
			break
		}
		acts = m.yield(e.At, "key_pressed")
	case Thinking:
		if m.answersCaller() {
			acts = m.retract(e.At, "key_pressed")
		}
	case Listening, Hearing, Closing, Held:
	}
	m.keys += e.Text
	m.keyed = e.At
	if m.state == Speaking || m.state == Paused || m.state == Thinking || m.voiced {
		return acts // answered with what is said beside it
	}
	m.state, m.lull, m.usable, m.lastEnd = Closing, true, e.At, max(m.lastEnd, e.At)
	return append(acts, m.close(e.At)...)
}

// Pause is the pause after text, as a classifier is asked about it.
func (m *Machine) Pause(text string) eot.Pause {
	return eot.Pause{
		Text: text, Asked: m.question, Language: m.policy.Language,
		Prosody: eot.Prosody{Fall: m.tone.Pitch, Trail: m.tone.Trail, Known: m.tone.Toned},
	}
}

// guess is how likely it is that the caller has finished.
func (m *Machine) guess(text string) eot.Guess {
	g := m.Pause(text).Guess()
	if m.eot > 0 {
		g.P, g.Reason = m.eot, "recognizer"
	}
	if m.judge.at > 0 && m.judge.p >= 0 && m.judge.text == wording(text) {
		g.P, g.Reason = m.judge.p, "classifier"
	}
	return g
}

// patient is how long after the caller's last sound the turn is committed.
// Callers who were cut off are given more time, where their words do not tell
// for sure, and after the third time as much as their own pauses ask for.
func (m *Machine) patient(g eot.Guess) time.Duration {
	d := patience(g.P)
	if g.Dictation {
		d += dictation
	}
	if g.P < 0.9 {
		d += time.Duration(m.cutOffs) * perCutOff
	}
	if g.P < 0.9 && m.cutOffs >= adapting {
		d = max(d, min(m.pauses*5/4, slowest))
	}
	return min(d, mostPatient)
}

// speculate begins an answer to what was understood so far, where the caller
// may have finished. What the last word was must be known: a transcript that
// ends before the sound does would have to be asked about again.
func (m *Machine) speculate() []Action { return m.begin(0.6) }

// begin begins an answer, where the caller has finished with probability p.
func (m *Machine) begin(p float64) []Action {
	text := m.turnText()
	if m.specs >= m.policy.Speculations || text == "" || !m.lull || m.state != Hearing && m.state != Closing ||
		m.until > 0 && m.until < m.lastEnd-150*time.Millisecond {
		return nil
	}
	same := wording(text)
	if g := m.guess(text); same == m.spec || g.P < p || g.Dictation && p > 0 {
		return nil
	}
	m.spec = same
	m.specs++
	m.ready = false
	return []Action{{Do: Speculate, Text: text, Reason: "may_have_finished"}}
}

// close decides, in the caller's silence, whether the turn has ended.
func (m *Machine) close(at time.Duration) []Action {
	text := m.turnText()
	if m.asked > 0 || text != "" && m.trails() {
		if due := m.answerDue(text); at < due {
			return []Action{m.wake(due)}
		}
		if m.asked > 0 && m.keys == "" && (text == "" || m.behind()) {
			return m.unheard(at)
		}
		m.giveUp()
		m.usable, m.owed = at, true
	}
	if text == "" && m.keys == "" {
		m.state = Listening
		m.voiced, m.stirred = false, false // whatever it was, it is no voice
		m.spec, m.ready, m.specs, m.owed, m.most = "", false, 0, false, 0
		return []Action{{Do: Drop, Reason: "no_words"}, m.wake(max(at, m.idleAt))}
	}
	if m.mute && m.sounding && !m.voiced { // it was speech: its words come only now
		m.voiced = true
		return []Action{m.hear(at)}
	}
	if acts, wait := m.weigh(at, text); wait {
		return acts
	}
	return m.end(at, text)
}

// answerDue is until when the recognizer's answer is waited for. One that was
// just opened is given the time to catch up, and so is one that understood
// nothing yet of the last stretch of speech.
func (m *Machine) answerDue(text string) time.Duration {
	due := m.closing + m.policy.Deaf
	if m.keys == "" && (text == "" || m.behind()) {
		return due
	}
	return min(due, max(max(m.closing, m.reopened)+m.policy.Final, m.usable+growing)) // it may be growing still
}

// behind tells that the recognizer understood nothing yet of the last stretch of
// speech.
func (m *Machine) behind() bool { return m.until > 0 && m.until <= m.onset }

// trails tells that the recognizer did not answer in time, and has not come to the
// end of speech that was no cough.
func (m *Machine) trails() bool {
	return m.owed && m.most >= m.policy.Insist && m.until > 0 && m.until < m.lastEnd-m.policy.Sustained
}

// settle notes up to where the caller's words are taken care of: what the
// recognizer has not come to may still be said.
func (m *Machine) settle() {
	to := m.lastEnd
	if m.until > m.told {
		to = min(to, m.until)
	}
	m.told, m.settled = max(m.told, to), max(m.settled, m.lastEnd)
	m.owed, m.most = false, 0
}

// weigh tells whether the turn may have to go on, and what to do meanwhile.
func (m *Machine) weigh(at time.Duration, text string) (acts []Action, wait bool) {
	g := m.guess(text)
	due := m.lastEnd + m.patient(g)
	if m.keys != "" {
		if due = m.keyed + m.policy.Keys; strings.HasSuffix(m.keys, "#") {
			due = at
		}
	} else if m.policy.Classifier > 0 {
		if same := wording(text); m.judge.text != same {
			m.judge = judgement{text: same, asked: at}
			acts = append(acts, Action{Do: Judge, Text: text})
		}
		if last := m.judge.asked + m.policy.Classifier; m.judge.at == 0 && due < last {
			due, m.judge.due = last, last
		}
	}
	if m.stirred && !m.voiced && due <= at {
		due = at + 60*time.Millisecond // the next frames tell whether the caller goes on
	}
	switch {
	case at >= due:
		return nil, false
	case at+ahead < due:
		return append(acts, m.wake(due-ahead)), true
	default:
		return append(append(acts, m.begin(0)...), m.wake(due)), true
	}
}

// judged takes the classifier's answer.
func (m *Machine) judged(e Event) []Action {
	if wording(e.Text) != m.judge.text {
		return nil // about what was said before
	}
	m.judge.at, m.judge.p = e.At, e.P
	if m.state != Closing {
		return nil
	}
	return append(m.speculate(), m.close(e.At)...)
}

// end ends the caller's turn.
func (m *Machine) end(at time.Duration, text string) []Action {
	g := m.guess(text)
	if m.keys != "" {
		g.Reason = "keys"
	}
	c := Action{
		Do: Commit, Text: text, Keys: m.keys, Reason: g.Reason, From: m.lastEnd, Usable: m.usable,
		Fragments: m.fragments + 1, At: at, Held: m.spec != "" && m.keys == "" && m.spec == wording(text),
	}
	if c.Judged = m.judge.at; c.Judged == 0 {
		c.Judged = m.judge.due
	}
	m.state, m.commit, m.filled, m.pending = Thinking, at, false, true
	m.ready, m.released, m.doubt, m.begun = c.Held && m.ready, false, 0, c.Held
	m.answering, m.answered, m.text, m.partial, m.keys = text, m.keys, nil, "", ""
	m.nudges, m.greeting, m.spec, m.eot = 0, false, "", 0
	m.judge, m.tone, m.noted = judgement{}, Event{}, ""
	m.settle()
	acts := []Action{c, m.wake(m.filling())}
	return append(acts, m.release()...)
}
