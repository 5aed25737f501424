package turn

import (
	"slices"
	"strings"
	"time"
)

// agent holds the answer that is being prepared and the speech that is being played.
type agent struct {
	policy *Policy

	text      string        // caller's text that the agent answers; empty if the speech answers nothing
	keys      string        // keys that are answered together with the text
	fragments int           // number of retracted commits whose text is part of text
	commit    time.Duration // when the turn was committed
	begun     bool          // the answer was begun before the commit
	pending   bool          // the answer is not audible yet
	ready     bool          // the first sound of the answer exists
	released  bool          // the answer may be played
	doubt     time.Duration // until this time a sound during Thinking may turn out to be words; 0 if there was none
	filled    bool          // a filler was played before the answer
	spec      string        // normalized text of the prepared answer
	specs     int           // number of answers prepared for this turn before its commit

	greeting  bool // the agent's first words have not ended
	broken    bool // the greeting cannot be spoken
	audibleAt time.Duration
	ducked    bool
	merging   bool          // the answer is retracted if the caller continues after this pause
	saying    string        // the agent's last words
	whole     bool          // the caller heard all of saying
	noted     string        // words that the caller said during saying
	notedAt   time.Duration // when noted ended
	quietAt   time.Duration // when the agent stopped speaking
}

// answersCaller reports whether the agent's speech answers the caller.
func (a *agent) answersCaller() bool { return a.text != "" || a.keys != "" }

// release lets the answer be played unless the caller may still be speaking. The greeting, and
// an answer after a filler, do not wait for the caller.
func (a *agent) release(s State, c *caller) []Action {
	quiet := a.greeting || s == Speaking || c.isQuiet() && a.doubt == 0
	if !a.pending || !a.ready || a.released || !quiet {
		return nil
	}
	a.released = true
	return []Action{{Do: Release}}
}

// fillerDue returns when to play a filler: at settled (the end of the answered speech) plus Policy.Filler, or at the
// commit plus grace if that is later. If the answer was begun before the commit, grace starts ahead (600 ms) before
// the commit.
func (a *agent) fillerDue(settled time.Duration) time.Duration {
	since := a.commit
	if a.begun {
		since -= ahead
	}
	return max(since+grace, settled+a.policy.Filler)
}

// fill plays a filler if it is due, and sets the timer for the next step.
func (a *agent) fill(at, due time.Duration) []Action {
	giveUp := wake(a.commit + a.policy.GiveUp)
	switch {
	case a.filled || a.released:
		return []Action{giveUp}
	case at < due:
		return []Action{wake(due)}
	case a.answersCaller() || a.greeting:
		a.filled = true
		return []Action{{Do: Fill, Reason: "answer_slow"}, giveUp}
	default:
		return []Action{giveUp}
	}
}

func (a *agent) speak(act Action, at time.Duration) []Action {
	a.pending, a.ready, a.released, a.doubt = true, true, true, 0
	a.text, a.keys, a.commit, a.begun = "", "", at, false
	return []Action{act, wake(at + a.policy.GiveUp)}
}

// note records words during the agent's speech that need no answer.
func (a *agent) note(at time.Duration, r *recognizer, c *caller) []Action {
	a.noted, a.notedAt = r.words(), c.lastEnd
	r.clear()
	r.settle(c)
	return []Action{{Do: Note, Text: a.noted, Reason: "backchannel", From: c.lastEnd, At: at}}
}

func (a *agent) forget() { a.spec, a.ready, a.specs = "", false, 0 }

func (a *agent) stop(at time.Duration) {
	a.pending, a.released, a.greeting, a.merging, a.ducked, a.doubt = false, false, false, false, false, 0
	a.specs = 0
	a.text, a.keys, a.fragments = "", "", 0
	a.noted, a.quietAt = "", at
}

func (a *agent) duck(s State) []Action {
	if s != Speaking || a.ducked || a.isUninterruptible() {
		return nil
	}
	a.ducked = true
	return []Action{{Do: Duck, Reason: "sound"}}
}

func (a *agent) unduck(reason string) []Action {
	if !a.ducked {
		return nil
	}
	a.ducked = false
	return []Action{{Do: Unduck, Reason: reason}}
}

// isUninterruptible reports whether the agent's speech must be played to its end.
func (a *agent) isUninterruptible() bool { return a.greeting && a.policy.Uninterruptible }

// ignoresWords reports whether the agent ignores the caller's words, because it is greeting. A long voice may still
// stop the greeting.
func (a *agent) ignoresWords(s State) bool {
	return a.greeting && (s == Speaking || a.policy.Uninterruptible)
}

// pause pauses the agent's speech until the caller's words, or their absence, decide whether it continues.
func (a *agent) pause(at time.Duration, reason string) []Action {
	return []Action{{Do: Pause, Reason: reason}, wake(at + a.policy.Wordless)}
}

// mayMerge reports whether the caller heard so little of the answer that the answer can be retracted.
func (a *agent) mayMerge(e Event) bool {
	return !a.greeting && !a.pending && !a.policy.NoMerge && e.At-a.audibleAt <= a.policy.Merge && e.Words <= a.policy.MergeWords
}

// bargeIn returns how long the caller must speak to pause the agent.
func (a *agent) bargeIn() time.Duration {
	switch {
	case a.greeting:
		return a.policy.SustainedGreeting
	case readsBack(a.saying):
		return a.policy.SustainedReadBack
	default:
		return a.policy.Sustained
	}
}

// isEcho reports whether the words are an echo of the agent. Unless the line is known to have
// echo, every word but the last must match in full.
func (a *agent) isEcho(words []string, e Event) bool {
	if e.HasEcho {
		return echo(words, a.saying, 1)
	}
	said := normal(a.saying)
	for i, w := range words {
		last := i == len(words)-1 && len(said) > 0 && strings.HasPrefix(said[len(said)-1], w)
		if !last && !slices.Contains(said, w) {
			return false
		}
	}
	return true
}

// isLateEcho reports whether text is the end of the agent's speech, recognized just after it.
func (a *agent) isLateEcho(e Event, s State, text string) bool {
	return s != Speaking && s != Paused && e.HasEcho && e.From > 0 && e.From < a.quietAt+returnTime && echo(normal(text), a.saying, 1)
}

// isAnswerToGreeting reports whether text needs an answer after the greeting: it is longer than
// a hello, and not an echo of the greeting.
func (a *agent) isAnswerToGreeting(text string) bool {
	words := normal(text)
	return len(words) > 2 && !echo(words, a.saying, 0.6)
}
