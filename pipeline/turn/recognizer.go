package turn

import (
	"slices"
	"strings"
	"time"
)

// recognizer holds the transcript of the turn and the Finalizes that wait for an answer.
type recognizer struct {
	policy *Policy

	text      []string      // final text of this turn
	partial   string        // text that may still change
	partials  bool          // the recognizer sends text before Finalize
	finalOnly bool          // the recognizer sends text only after Finalize
	until     time.Duration // end of the transcribed speech; 0 if unknown
	usable    time.Duration // when the transcript last changed
	eot       float64       // the recognizer's own probability that the turn ended; 0 if it reports none

	asked     int           // number of unanswered Finalizes
	abandoned int           // number of earlier Finalizes whose answers the machine no longer waits for; these answers come first
	overdue   bool          // the answer to Finalize did not come in time, but words may still come
	again     bool          // the recognizer failed before it transcribed a sound during the agent's speech
	openedAt  time.Duration // when a recognizer was last opened
	closing   time.Duration // when the wait for the answer to Finalize began
	longest   time.Duration // longest voiced stretch that is not transcribed yet
	settled   time.Duration // end of the caller's speech that was answered last
	doneUntil time.Duration // words said before this time are answered or apologized for
}

func (r *recognizer) words() string {
	return strings.TrimSpace(strings.Join(append(slices.Clip(r.text), r.partial), " "))
}

func (r *recognizer) clear() { r.text, r.partial = nil, "" }

func (r *recognizer) add(e Event, text string) {
	r.onAnswer(e)
	switch {
	case !e.Final:
		r.partial, r.partials = text, r.partials || text != ""
	case text != "":
		r.addFinal(text)
		r.finalOnly = !r.partials
	default:
		r.partial = ""
	}
	r.usable, r.eot = e.At, e.P
	if e.Until > 0 && (text != "" || !e.Unanswered) {
		r.until = e.Until
	}
}

func (r *recognizer) addFinal(text string) { r.text, r.partial = append(r.text, text), "" }

// onAnswer counts a result that answers a Finalize.
func (r *recognizer) onAnswer(e Event) {
	r.overdue = r.overdue || e.Unanswered
	switch {
	case !e.Finalized:
	case r.abandoned > 0:
		r.abandoned--
	case r.asked > 0:
		r.asked--
	}
	if e.Finalized && !e.Unanswered && r.asked == 0 {
		r.longest = 0
	}
}

// abandon stops waiting for the open Finalizes.
func (r *recognizer) abandon() { r.abandoned, r.asked = r.abandoned+r.asked, 0 }

// giveUp stops waiting for words of the caller's last speech.
func (r *recognizer) giveUp(at time.Duration, c *caller) {
	r.abandon()
	r.usable, r.settled, r.doneUntil, r.overdue, r.longest = at, c.lastEnd, c.lastEnd, false, 0
}

// onFailure forgets the Finalizes of the failed recognizer. If one of them is unanswered, onOpen repeats it.
func (r *recognizer) onFailure(s State) {
	r.asked, r.abandoned, r.partial = min(r.asked, 1), 0, ""
	if s != Closing && s != Held {
		r.again = r.again || r.asked > 0
		r.asked = 0
	}
}

// onOpen repeats a Finalize that the failed recognizer did not answer. The new recognizer has
// received the audio that was not transcribed.
func (r *recognizer) onOpen(e Event, s State) []Action {
	r.openedAt, r.finalOnly, r.partials = e.At, e.FinalOnly, r.partials && !e.FinalOnly
	again := r.again && s != Hearing // in Hearing, a Finalize follows anyway when the speech ends
	if r.again = false; again && r.asked == 0 {
		r.asked = 1
	} else if r.asked == 0 || s != Closing && s != Held {
		return nil
	}
	return []Action{{Do: Finalize, Reason: "recognizer_reopened"}}
}

// hasNothing reports whether the caller's last speech has no transcript at all.
func (r *recognizer) hasNothing(c *caller) bool { return r.words() == "" || r.isBehind(c) }

// isBehind reports whether the transcript ends before the last stretch of speech.
func (r *recognizer) isBehind(c *caller) bool { return r.until > 0 && r.until <= c.onset }

// missesEnd reports whether the answer is overdue and the transcript ends before a stretch of
// speech that was longer than a cough.
func (r *recognizer) missesEnd(c *caller) bool {
	return r.overdue && r.longest >= r.policy.Insist && r.until > 0 && r.until < c.lastEnd-r.policy.Sustained
}

// ignores reports whether a stretch of speech longer than a cough is not transcribed.
func (r *recognizer) ignores(c *caller) bool {
	return r.longest >= r.policy.Insist && (r.hasNothing(c) || r.until > 0 && r.until < c.lastEnd-r.policy.Insist)
}

// isLate reports whether the newest words belong to speech that is over.
func (r *recognizer) isLate(c *caller) bool {
	return !c.voiced && r.until > 0 && r.until < c.lastEnd+r.policy.Insist
}

// isDone reports whether e answers the last Finalize and the caller is silent.
func (r *recognizer) isDone(e Event, c *caller) bool {
	return !c.voiced && e.Finalized && r.asked == 0
}

// answerDue returns the time until which the machine waits for the answer to Finalize. A recognizer that was just
// opened, or that has no text of the last speech, gets more time.
func (r *recognizer) answerDue(c *caller, text string) time.Duration {
	due := r.closing + r.policy.Deaf
	if !c.hasInput() && (text == "" || r.isBehind(c)) {
		return due
	}
	return min(due, max(max(r.closing, r.openedAt)+r.policy.Final, r.usable+growing)) // growing: the text may still change
}

// settle marks the caller's words up to the end of the transcript as answered. Later words may still come.
func (r *recognizer) settle(c *caller) {
	to := c.lastEnd
	if r.until > r.doneUntil {
		to = min(to, r.until)
	}
	r.doneUntil, r.settled = max(r.doneUntil, to), max(r.settled, c.lastEnd)
	r.overdue, r.longest = false, 0
}
