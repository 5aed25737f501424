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
	// atWork is how long, where it does.
	atWork = 2500 * time.Millisecond
)

// heard is what a message of a provider says.
type heard struct {
	pipeline.Result
	none   bool // there is no result in it
	answer bool // it answers Finalize, if one is open
	// upTo, where not 0, says that all that was said before is in results that
	// came: nothing is open.
	upTo    time.Duration
	working bool // the provider has begun to work on an answer to Finalize
}

// A ledger sees to it that each Finalize has one answer: the provider's, or
// one of its own where the provider has nothing to say or does not answer in
// time. It is pure: times since the stream was opened come in from outside.
type ledger struct {
	quiet int

	asks    []ask
	partial pipeline.Result // the newest, not yet final
	settled time.Duration   // of sound: what was said before is told
	lost    int             // answers that were given up and may still come
	seq     int             // of what happened
	sign    int             // when the provider last sent anything
	since   int             // when the question was put that was answered last
	silent  int             // answers in a row without a sign
}

// An ask is a Finalize that has no answer yet.
type ask struct {
	at      time.Duration // of sound
	until   time.Duration
	seq     int
	working bool
}

// ask notes a Finalize of all the sound before at.
func (l *ledger) ask(at, now time.Duration) {
	l.seq++
	l.asks = append(l.asks, ask{at: at, until: now + patience, seq: l.seq})
}

// due is when late wants to be called.
func (l *ledger) due() (time.Duration, bool) {
	if len(l.asks) == 0 {
		return 0, false
	}
	return l.asks[0].until, true
}

// take returns the results that follow from what was heard.
func (l *ledger) take(h heard, now time.Duration) []pipeline.Result {
	l.seq++
	l.sign, l.silent = l.seq, 0
	if i := slices.IndexFunc(l.asks, func(a ask) bool { return !a.working }); h.working && i >= 0 {
		l.asks[i].working, l.asks[i].until = true, max(l.asks[i].until, now-patience+atWork)
	}
	var out []pipeline.Result
	if r, ok := l.result(h); ok {
		out = append(out, r)
	}
	for h.upTo > 0 && len(l.asks) > 0 && l.asks[0].at <= h.upTo {
		out = append(out, l.settle(pipeline.Result{Start: l.asks[0].at, End: l.asks[0].at}))
	}
	return out
}

// result is what of a message is news.
func (l *ledger) result(h heard) (pipeline.Result, bool) {
	if h.none {
		return h.Result, false
	}
	if h.answer && l.lost > 0 && h.End <= l.settled {
		l.lost-- // it comes late: what it says was told
		if h.End == 0 {
			return h.Result, false
		}
		h.answer = false
	}
	r := l.place(h.Result)
	if r.Text == "" && h.Text != "" && !h.answer {
		return r, false // it was told
	}
	if h.answer && len(l.asks) > 0 {
		return l.settle(r), true
	}
	r.Finalized = false
	if r.Final {
		l.partial, l.settled = pipeline.Result{}, max(l.settled, r.End)
		return r, !h.answer || r.Text != "" || h.EndOfTurn > 0
	}
	l.partial = r
	return r, true
}

// place gives a result times where the provider tells none, and leaves out what
// was told already.
func (l *ledger) place(r pipeline.Result) pipeline.Result {
	switch {
	case r.End == 0:
		r.Start, r.End = l.settled, l.settled
		if len(l.asks) > 0 {
			r.End = l.asks[0].at
		}
	case r.Start < l.settled && r.Text != "":
		r = after(r, l.settled)
	}
	return r
}

// settle makes r the answer to the oldest ask.
func (l *ledger) settle(r pipeline.Result) pipeline.Result {
	r.Final, r.Finalized = true, true
	l.settled = max(l.settled, r.End)
	l.since, l.asks, l.partial = l.asks[0].seq, l.asks[1:], pipeline.Result{}
	return r
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
		at := l.asks[0].at
		r := l.partial
		if r.Text == "" {
			r = pipeline.Result{Start: at}
		}
		r.Unanswered = l.sign < l.asks[0].seq
		r.End = max(r.End, at)
		l.lost++
		out = append(out, l.settle(r))
	}
	return out, nil
}

// after is what of r was said at from or later, by the times of its words.
func after(r pipeline.Result, from time.Duration) pipeline.Result {
	r.Words = slices.DeleteFunc(slices.Clone(r.Words), func(w pipeline.Word) bool { return w.Start < from })
	var texts []string
	for _, w := range r.Words {
		texts = append(texts, w.Text)
	}
	r.Text, r.Start = strings.Join(texts, " "), max(r.Start, from)
	r.End = max(r.End, r.Start)
	return r
}
