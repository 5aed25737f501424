package asr

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

const (
	// answerTimeout bounds the wait for the answer to Finalize if the provider is silent.
	answerTimeout = 700 * time.Millisecond
	// slowTimeout replaces answerTimeout if the provider sends anything. It must end before the
	// turn machine's own timeout (turn.Policy.Deaf), including the 180 ms that make a silence.
	slowTimeout = 1700 * time.Millisecond
	// endTolerance is how far the end of a result may exceed the audio that it belongs to.
	endTolerance = 50 * time.Millisecond
	// maxAbandoned bounds the abandoned requests that are remembered.
	maxAbandoned = 16
)

// An update is the content of a provider's message.
type update struct {
	pipeline.Result
	empty bool // the message has no result
	// alive means that the message shows only that the provider works. It says nothing about
	// the audio and does not extend the wait for the answer to an open Finalize.
	alive  bool
	answer bool // the message answers an open Finalize, if there is one
	// upTo, if not 0, declares that all earlier audio is covered by results.
	upTo time.Duration
	// item is the provider's name for the audio. named means that this name belongs to the oldest
	// Finalize without one.
	item  string
	named bool
}

// A tracker gives each Finalize exactly one answer, in order: the provider's, or a
// substitute if the provider has no text or is late. A later answer is delivered without
// the words already delivered. It is pure: the caller passes the time since the stream was
// opened.
type tracker struct {
	maxSilent int

	requests    []request
	abandoned   []request       // requests that were answered by a substitute and may still be answered by the provider
	partial     pipeline.Result // latest interim result
	settledUpTo time.Duration   // position of the audio up to which results were delivered
	wordsUpTo   time.Duration   // end of the last delivered word
	lastRequest time.Duration   // audio position of the newest request
	heard       time.Duration   // audio position that the provider has reached; set by the caller
	seq         int             // number of events so far
	lastSign    int             // event number of the provider's last message
	answeredAt  int             // event number of the request answered last
	silentCount int             // successive requests after which no message came
}

// A request is a Finalize without an answer.
type request struct {
	from, at       time.Duration // audio positions of the previous request and of this one
	sent           time.Duration // time since the opening when it was sent
	until          time.Duration
	seq            int
	item           string           // the provider's item name, if any
	result         *pipeline.Result // the provider's answer while it waits for earlier answers
	deliveredWords int              // number of words delivered in place of its answer
}

// addRequest records a Finalize of all audio before at.
func (l *tracker) addRequest(at, now time.Duration) {
	l.seq++
	l.requests = append(l.requests, request{from: l.lastRequest, at: at, sent: now, until: now + answerTimeout, seq: l.seq})
	l.lastRequest = at
}

// nextTimeout returns when onTimeout is to be called.
func (l *tracker) nextTimeout() (time.Duration, bool) {
	if len(l.requests) == 0 {
		return 0, false
	}
	return l.requests[0].until, true
}

// onUpdate returns the results that follow from an update.
func (l *tracker) onUpdate(h update) []pipeline.Result {
	l.seq++
	l.lastSign, l.silentCount = l.seq, 0
	if h.alive {
		return nil
	}
	for i, a := range l.requests { // any message shows that the provider is slow, not dead
		l.requests[i].until = max(a.until, a.sent+slowTimeout)
	}
	if h.named {
		l.nameOldest(h.item)
	}
	var out []pipeline.Result
	switch {
	case h.empty, !h.Final && h.Text == "" && l.partial.Text == "":
	case h.End == 0:
		out = l.untimed(h)
	default:
		out = l.timed(h)
	}
	if h.upTo > 0 {
		out = append(out, l.settleEmpty(h.upTo)...)
	}
	return out
}

// settleEmpty answers the requests up to a position for which no text remains.
func (l *tracker) settleEmpty(upTo time.Duration) []pipeline.Result {
	l.abandoned = slices.DeleteFunc(l.abandoned, func(a request) bool { return a.at <= upTo })
	var out []pipeline.Result
	for len(l.requests) > 0 && l.requests[0].at <= upTo {
		out = append(out, l.settle(pipeline.Result{Start: l.requests[0].at, End: l.requests[0].at})...)
	}
	return out
}

// timed returns the new part of an update by its word times.
func (l *tracker) timed(h update) []pipeline.Result {
	r := h.Result
	if r.Start < max(l.settledUpTo, l.wordsUpTo) && r.Text != "" {
		r = l.undelivered(r)
	}
	var out []pipeline.Result
	if h.answer && l.isAnswer(h.End) {
		if n := len(l.requests); n > 1 { // earlier requests have no part in this result
			out = l.settleEmpty(min(h.End-endTolerance, l.requests[n-1].at-1))
		}
		return append(out, l.settle(r)...)
	}
	switch r.Finalized = false; {
	case r.Text == "" && h.Text != "": // all words were delivered already
		return nil
	case !r.Final:
		l.partial = r
		return []pipeline.Result{r}
	}
	l.markDelivered(r)
	if r.Text == "" && h.answer && h.EndOfTurn == 0 {
		return nil
	}
	return []pipeline.Result{r}
}

// isAnswer reports whether an answer that ends at that position belongs to an open request
// rather than to the oldest abandoned one. Answers arrive in order.
func (l *tracker) isAnswer(end time.Duration) bool {
	if len(l.abandoned) > 0 && end <= l.abandoned[0].at+endTolerance {
		l.abandoned = l.abandoned[1:]
		return false
	}
	l.abandoned = nil
	return len(l.requests) > 0
}

// settle makes r the answer to the oldest request. Answers that waited for it follow.
func (l *tracker) settle(r pipeline.Result) []pipeline.Result {
	r.Final, r.Finalized = true, true
	l.markDelivered(r)
	l.answeredAt, l.requests = l.requests[0].seq, l.requests[1:]
	if len(l.requests) > 0 && l.requests[0].result != nil {
		return append([]pipeline.Result{r}, l.settle(*l.requests[0].result)...)
	}
	return []pipeline.Result{r}
}

// onTimeout answers late requests with the interim text so far, or with no text. It
// returns an error if the provider has been silent too often.
func (l *tracker) onTimeout(now time.Duration) ([]pipeline.Result, error) {
	var out []pipeline.Result
	for len(l.requests) > 0 && l.requests[0].until <= now {
		if l.lastSign <= l.answeredAt {
			if l.silentCount++; l.maxSilent > 0 && l.silentCount >= l.maxSilent {
				return out, errSilent
			}
		}
		a, r, settled := l.requests[0], l.partial, l.settledUpTo
		if r.Text == "" {
			r = pipeline.Result{Start: a.at, End: a.at}
		} else if len(r.Words) == 0 {
			settled = max(settled, r.End)
		}
		r.Unanswered, a.deliveredWords = true, len(strings.Fields(r.Text))
		if l.abandoned = append(l.abandoned, a); len(l.abandoned) > maxAbandoned {
			l.abandoned = l.abandoned[1:]
		}
		out = append(out, l.settle(r)...)
		l.settledUpTo = settled
	}
	return out, nil
}

// markDelivered records that r is final and was delivered.
func (l *tracker) markDelivered(r pipeline.Result) {
	l.settledUpTo = max(l.settledUpTo, r.End)
	if n := len(r.Words); n > 0 {
		l.wordsUpTo = max(l.wordsUpTo, r.Words[n-1].End)
	}
	l.partial = l.undelivered(l.partial)
}

// undelivered returns the part of r that was not delivered, by word times. A word that crosses
// the boundary belongs to the side of its middle.
func (l *tracker) undelivered(r pipeline.Result) pipeline.Result {
	r.Words = slices.DeleteFunc(slices.Clone(r.Words), func(w pipeline.Word) bool {
		return w.Start < l.wordsUpTo || w.Start+max(0, w.End-w.Start)/2 < l.settledUpTo
	})
	var texts []string
	for _, w := range r.Words {
		texts = append(texts, w.Text)
	}
	r.Text, r.Start = strings.Join(texts, " "), max(r.Start, min(l.settledUpTo, r.End), l.wordsUpTo)
	if len(r.Words) > 0 {
		r.Start = r.Words[0].Start
	}
	r.End = max(r.End, r.Start)
	return r
}
