package turn

import (
	"strings"
	"time"
)

// mayHaveFinished is the minimum probability that the caller has finished at which an answer is prepared.
const mayHaveFinished = 0.6

func (m *Machine) onTranscript(e Event) []Action {
	r, text := &m.recognizer, strings.TrimSpace(e.Text)
	if e.From > 0 && e.From < r.doneUntil && text != "" {
		r.onAnswer(e)
		return nil // these words were already answered
	}
	if e.Unanswered && m.state == Closing && r.ignores(&m.caller) {
		if acts := m.askAgain(e.At, text); acts != nil {
			return acts
		}
	}
	if m.agent.isLateEcho(e, m.state, text) {
		text = ""
	}
	r.add(e, text)
	switch m.state {
	case Closing:
		return append(m.speculate(mayHaveFinished), m.close(e.At)...)
	case Speaking, Paused:
		return m.onWordsOverSpeech(e)
	case Thinking:
		return m.onWordsWhileThinking(e, text)
	case Hearing, Listening, Held:
	}
	if text == "" {
		return nil
	}
	return m.onUnaskedWords(e)
}

// onUnaskedWords handles words that came without a Finalize. Final words of speech that has
// ended also end the turn.
func (m *Machine) onUnaskedWords(e Event) []Action {
	if e.Final && (m.state == Listening || m.state == Hearing && m.recognizer.isLate(&m.caller)) {
		return m.closeLate(e.At)
	}
	return append([]Action{m.hear(e.At)}, m.speculate(mayHaveFinished)...)
}

// askAgain opens another recognizer if there is time, because the current one did not transcribe the caller's last
// speech. Otherwise it apologizes if that speech has no transcript at all.
func (m *Machine) askAgain(at time.Duration, text string) []Action {
	r := &m.recognizer
	switch {
	case at+m.policy.Final <= r.closing+m.policy.Deaf:
		if text != "" { // the next recognizer receives only the audio after these words
			r.addFinal(text)
		}
		return []Action{{Do: Reopen, Reason: RecognizerSilent}, wake(r.answerDue(&m.caller, ""))}
	case text == "" && r.asked == 1 && r.abandoned == 0 && !m.caller.hasInput() && r.hasNothing(&m.caller):
		r.giveUp(at, &m.caller)
		return m.apologize(at, RecognizerSilent)
	default:
		return nil
	}
}

// onWordsWhileThinking decides about words that came while an answer is prepared.
func (m *Machine) onWordsWhileThinking(e Event, text string) []Action {
	a, r, words := &m.agent, &m.recognizer, normal(text)
	switch {
	case !a.answersCaller():
		return nil
	case backchannel(words) && e.Final && !m.caller.voiced:
		a.doubt = 0
		return append(a.note(e.At, r, &m.caller), a.release(m.state, &m.caller)...)
	case len(words) > 0 && !backchannel(words) && (e.Final || m.caller.voiced):
		return append(m.retract(e.At, "words_heard"), m.closeLate(e.At)...)
	case a.doubt > 0 && e.Finalized && r.asked == 0 && r.words() == "":
		a.doubt = 0 // the sound was only noise
		return a.release(m.state, &m.caller)
	default:
		return nil
	}
}

// closeLate starts to end the turn after words that came late, or after speech that the voice activity detector
// missed.
func (m *Machine) closeLate(at time.Duration) []Action {
	c := &m.caller
	if c.voiced {
		return nil // the Silence event after the words ends the turn
	}
	if !m.recognizer.isLate(c) {
		c.lastEnd = max(c.lastEnd, at-m.policy.Waits.at(1))
	}
	m.state, c.lull = Closing, true
	return append(m.speculate(mayHaveFinished), m.close(at)...)
}

// speculate prepares an answer to the text so far if the caller has finished with a probability of at least p. The
// text must reach the end of the sound; otherwise more words are to come.
func (m *Machine) speculate(p float64) []Action {
	a, r, c := &m.agent, &m.recognizer, &m.caller
	text := r.words()
	if a.specs >= m.policy.Speculations || text == "" || !c.lull || m.state != Hearing && m.state != Closing ||
		r.until > 0 && r.until < c.lastEnd-150*time.Millisecond {
		return nil
	}
	same := wording(text)
	if same == a.spec {
		return nil
	}
	if g := m.endpointer.guess(text, r); g.P < p || g.Dictation && p > 0 {
		return nil
	}
	a.spec = same
	a.specs++
	a.ready = false
	return []Action{{Do: Speculate, Text: text, Reason: "may_have_finished"}}
}

// close decides during the caller's silence whether the turn has ended.
func (m *Machine) close(at time.Duration) []Action {
	r, c := &m.recognizer, &m.caller
	text := strings.TrimSpace(r.words() + " " + c.typed)
	if r.asked > 0 || text != "" && r.missesEnd(c) {
		if due := r.answerDue(c, text); at < due {
			return []Action{wake(due)}
		}
		if r.asked > 0 && !c.hasInput() && (text == "" || r.isBehind(c)) {
			r.giveUp(at, c)
			return m.apologize(at, RecognizerSilent)
		}
		r.abandon()
		r.usable, r.overdue = at, true
	}
	if text == "" && !c.hasInput() {
		m.state = Listening
		c.voiced, c.sound = false, false // the sound was only noise
		r.overdue, r.longest = false, 0
		m.agent.forget()
		return []Action{{Do: Drop, Reason: "no_words"}, wake(max(at, m.idleAt))}
	}
	if r.finalOnly && c.detected && !c.voiced { // the sound was taken for noise, but was speech
		c.voiced = true
		return []Action{m.hear(at)}
	}
	return m.weigh(at, text)
}

// weigh commits the turn if the silence was long enough. Otherwise it waits, and prepares the
// answer shortly before the commit.
func (m *Machine) weigh(at time.Duration, text string) []Action {
	due, acts := m.endpointer.due(at, text, &m.caller, &m.recognizer)
	switch {
	case at >= due:
		return m.commit(at, text)
	case at+ahead < due:
		return append(acts, wake(due-ahead))
	default:
		return append(append(acts, m.speculate(0)...), wake(due))
	}
}

func (m *Machine) commit(at time.Duration, text string) []Action {
	a, r, c, p := &m.agent, &m.recognizer, &m.caller, &m.endpointer
	g := p.guess(text, r)
	switch {
	case c.keys != "":
		g.Reason = "keys"
	case c.typed != "":
		g.Reason = "typed"
	}
	act := Action{
		Do: Commit, Text: text, Keys: c.keys, Reason: g.Reason, From: c.lastEnd, Usable: r.usable, Judged: p.judgedAt(),
		Fragments: a.fragments + 1, At: at, Prepared: a.spec != "" && c.keys == "" && a.spec == wording(text),
	}
	m.state, a.commit, a.filled, a.pending = Thinking, at, false, true
	a.ready, a.released, a.doubt, a.begun = act.Prepared && a.ready, false, 0, act.Prepared
	a.text, a.keys = text, c.keys
	c.clearInput()
	r.clear()
	m.nudges, a.greeting, a.spec, r.eot = 0, false, "", 0
	p.judge, p.prosody, a.noted = judgment{}, Event{}, ""
	r.settle(c)
	acts := []Action{act, wake(a.fillerDue(r.settled))}
	return append(acts, a.release(m.state, c)...)
}
