package asr

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

const (
	// patience is how long an answer to Finalize may take where the provider
	// gives no sign that it works on one.
	patience = 700 * time.Millisecond
	// atWork is how long, where it does. It ends before the turn machine's own
	// patience (turn.Policy.Deaf) does, the 180 ms that make a silence counted in.
	atWork = 1700 * time.Millisecond
	// rounding is by how much the end of a result may exceed the sound that it
	// is of.
	rounding = 50 * time.Millisecond
	// mostLost is how many answers may be awaited that were given up.
	mostLost = 16
)

// heard is what a message of a provider says.
type heard struct {
	pipeline.Result
	none   bool // there is no result in it
	answer bool // it answers Finalize, if one is open
	// upTo, where not 0, says that all that was said before is in results that
	// came: nothing is open.
	upTo time.Duration
	// item is the provider's own name for the sound that it is of; begun, that
	// the oldest Finalize without a name gave it that one.
	item  string
	begun bool
}

// A ledger sees to it that each Finalize has one answer, in order: the
// provider's, or one of its own where the provider has nothing to say or does
// not answer in time. What comes later than that is told, too, but for the words
// that were. It is pure: times since the stream was opened come in from outside.
type ledger struct {
	quiet int

	asks    []ask
	lost    []ask           // that were given up, and may still be answered
	partial pipeline.Result // the newest, not yet final
	settled time.Duration   // of sound: what was said before is told
	worded  time.Duration   // of sound: where the last word ends that was told
	asked   time.Duration   // of sound: where the newest ask was
	seq     int             // of what happened
	sign    int             // when the provider last sent anything
	since   int             // when the question was put that was answered last
	silent  int             // answers in a row without a sign
}

// An ask is a Finalize that has no answer yet.
type ask struct {
	from, at time.Duration // of sound: where the ask before was, and this one
	put      time.Duration // when
	until    time.Duration
	seq      int
	item     string           // its name, where the provider gave it one
	held     *pipeline.Result // its answer, which waits for those before
	told     int              // how many words were told in place of its answer
}

// ask notes a Finalize of all the sound before at.
func (l *ledger) ask(at, now time.Duration) {
	l.seq++
	l.asks = append(l.asks, ask{from: l.asked, at: at, put: now, until: now + patience, seq: l.seq})
	l.asked = at
}

// due is when late wants to be called.
func (l *ledger) due() (time.Duration, bool) {
	if len(l.asks) == 0 {
		return 0, false
	}
	return l.asks[0].until, true
}

// take returns the results that follow from what was heard.
func (l *ledger) take(h heard) []pipeline.Result {
	l.seq++
	l.sign, l.silent = l.seq, 0
	for i, a := range l.asks { // any sign tells that it is slow, not gone
		l.asks[i].until = max(a.until, a.put+atWork)
	}
	if h.begun {
		l.name(h.item)
	}
	var out []pipeline.Result
	switch {
	case h.none, !h.Final && h.Text == "" && l.partial.Text == "":
	case h.End == 0:
		out = l.untimed(h)
	default:
		out = l.timed(h)
	}
	if h.upTo > 0 {
		out = append(out, l.nothing(h.upTo)...)
	}
	return out
}

// nothing answers the asks of sound up to a moment: there is no more.
func (l *ledger) nothing(upTo time.Duration) []pipeline.Result {
	l.lost = slices.DeleteFunc(l.lost, func(a ask) bool { return a.at <= upTo })
	var out []pipeline.Result
	for len(l.asks) > 0 && l.asks[0].at <= upTo {
		out = append(out, l.settle(pipeline.Result{Start: l.asks[0].at, End: l.asks[0].at})...)
	}
	return out
}

// timed is what of a message is news, by the times of its words.
func (l *ledger) timed(h heard) []pipeline.Result {
	r := h.Result
	if r.Start < max(l.settled, l.worded) && r.Text != "" {
		r = l.rest(r)
	}
	var out []pipeline.Result
	if h.answer && l.answers(h.End) {
		if n := len(l.asks); n > 1 { // it is not of those whose sound ended before
			out = l.nothing(min(h.End-rounding, l.asks[n-1].at-1))
		}
		return append(out, l.settle(r)...)
	}
	switch r.Finalized = false; {
	case r.Text == "" && h.Text != "": // it was told
		return nil
	case !r.Final:
		l.partial = r
		return []pipeline.Result{r}
	}
	l.tell(r)
	if r.Text == "" && h.answer && h.EndOfTurn == 0 {
		return nil
	}
	return []pipeline.Result{r}
}

// answers tells that an answer that ends there is to one that is open, not to the
// oldest that was given up. Answers come in order.
func (l *ledger) answers(end time.Duration) bool {
	if len(l.lost) > 0 && end <= l.lost[0].at+rounding {
		l.lost = l.lost[1:]
		return false
	}
	l.lost = nil
	return len(l.asks) > 0
}

// settle makes r the answer to the oldest ask. Answers that waited for it follow.
func (l *ledger) settle(r pipeline.Result) []pipeline.Result {
	r.Final, r.Finalized = true, true
	l.tell(r)
	l.since, l.asks = l.asks[0].seq, l.asks[1:]
	if len(l.asks) > 0 && l.asks[0].held != nil {
		return append([]pipeline.Result{r}, l.settle(*l.asks[0].held)...)
	}
	return []pipeline.Result{r}
}

// late answers what the provider did not answer in time: with what it had
// understood so far, else with nothing. One that gives no sign of life is broken.
func (l *ledger) late(now time.Duration) ([]pipeline.Result, error) {
	var out []pipeline.Result
	for len(l.asks) > 0 && l.asks[0].until <= now {
		if l.sign <= l.since {
			if l.silent++; l.quiet > 0 && l.silent >= l.quiet {
				return out, errSilent
			}
		}
		a, r, settled := l.asks[0], l.partial, l.settled
		if r.Text == "" {
			r = pipeline.Result{Start: a.at, End: a.at}
		} else if len(r.Words) == 0 {
			settled = max(settled, r.End)
		}
		r.Unanswered, a.told = true, len(strings.Fields(r.Text))
		if l.lost = append(l.lost, a); len(l.lost) > mostLost {
			l.lost = l.lost[1:]
		}
		out = append(out, l.settle(r)...)
		l.settled = settled
	}
	return out, nil
}

// tell notes that r is told for good.
func (l *ledger) tell(r pipeline.Result) {
	l.settled = max(l.settled, r.End)
	if n := len(r.Words); n > 0 {
		l.worded = max(l.worded, r.Words[n-1].End)
	}
	l.partial = l.rest(l.partial)
}

// rest is what of r is not told, by the times of its words: of a word that a
// question fell into the middle tells.
func (l *ledger) rest(r pipeline.Result) pipeline.Result {
	r.Words = slices.DeleteFunc(slices.Clone(r.Words), func(w pipeline.Word) bool {
		return w.Start < l.worded || w.Start+max(0, w.End-w.Start)/2 < l.settled
	})
	var texts []string
	for _, w := range r.Words {
		texts = append(texts, w.Text)
	}
	r.Text, r.Start = strings.Join(texts, " "), max(r.Start, min(l.settled, r.End), l.worded)
	if len(r.Words) > 0 {
		r.Start = r.Words[0].Start
	}
	r.End = max(r.End, r.Start)
	return r
}
