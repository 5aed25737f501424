package asr

import (
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

const (
	// answerTimeout bounds the wait for the answer to Finalize while the provider sends nothing.
	answerTimeout = 700 * time.Millisecond
	// slowTimeout replaces answerTimeout once the provider sends anything. It must end before
	// turn.Policy.Deaf, which counts from the caller's last sound. Finalize comes 180 ms later.
	slowTimeout = 1700 * time.Millisecond
	// endTolerance is the time by which an answer may end after the audio position of its Finalize.
	endTolerance = 50 * time.Millisecond
	// maxAbandoned is the most abandoned requests that a tracker remembers.
	maxAbandoned = 16
)

// An update is the content of a provider's message.
type update struct {
	pipeline.Result
	empty bool // the message has no result
	// alive means that the message shows only that the provider works. It does not extend the wait
	// for the answer to an open Finalize.
	alive  bool
	answer bool // the message answers an open Finalize, if there is one
	// upTo is an audio position, or 0. Results cover all audio before it.
	upTo time.Duration
	// item is the provider's name for the stretch of audio that ends with a Finalize. named assigns
	// the name to the oldest Finalize without a name.
	item  string
	named bool
}

// A tracker gives each Finalize exactly one answer, in order. If the provider has no text or is late, the tracker
// substitutes an answer. It then delivers the provider's late text without the words that were already delivered.
// The tracker reads no clock: the caller passes the time since the stream was opened.
type tracker struct {
	maxSilent int

	requests    []request
	abandoned   []request       // requests that were answered by a substitute and may still be answered by the provider
	partial     pipeline.Result // latest interim result
	settledUpTo time.Duration   // position of the audio up to which results were delivered
	wordsUpTo   time.Duration   // end of the last delivered word
	lastRequest time.Duration   // audio position of the newest request
	heard       time.Duration   // duration of the audio sent at the newest message; set by the caller
	seq         int             // number of requests and messages so far
	lastSign    int             // value of seq at the provider's newest message
	answeredAt  int             // value of seq at the request answered last
	silentCount int             // successive requests without any message from the provider
}

// A request is a Finalize without an answer.
type request struct {
	from, at       time.Duration // audio positions of the previous request and of this one
	sent           time.Duration // time of the Finalize since the stream was opened
	until          time.Duration // time of the substitute answer since the stream was opened
	seq            int
	item           string           // the provider's item name, if any
	result         *pipeline.Result // the provider's answer while it waits for earlier answers
	deliveredWords int              // number of words in the substitute answer
}

// addRequest records a Finalize of all audio before at.
func (l *tracker) addRequest(at, now time.Duration) {
	l.seq++
	l.requests = append(l.requests, request{from: l.lastRequest, at: at, sent: now, until: now + answerTimeout, seq: l.seq})
	l.lastRequest = at
}

// nextTimeout returns the time for the next call of onTimeout. It reports false if there is no open request.
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

// settleEmpty answers the requests up to an audio position with empty results.
func (l *tracker) settleEmpty(upTo time.Duration) []pipeline.Result {
	l.abandoned = slices.DeleteFunc(l.abandoned, func(a request) bool { return a.at <= upTo })
	var out []pipeline.Result
	for len(l.requests) > 0 && l.requests[0].at <= upTo {
		out = append(out, l.settle(pipeline.Result{Start: l.requests[0].at, End: l.requests[0].at})...)
	}
	return out
}

// timed returns the results of an update with times. It omits the words already delivered.
func (l *tracker) timed(h update) []pipeline.Result {
	r := h.Result
	if r.Start < max(l.settledUpTo, l.wordsUpTo) && r.Text != "" {
		r = l.undelivered(r)
	}
	var out []pipeline.Result
	if h.answer && l.isAnswer(h.End) {
		if n := len(l.requests); n > 1 { // earlier requests get no text of this answer
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

// isAnswer reports whether an answer that ends at that audio position belongs to an open request. If
// it belongs to the oldest abandoned request, isAnswer removes that request. Answers arrive in order.
func (l *tracker) isAnswer(end time.Duration) bool {
	if len(l.abandoned) > 0 && end <= l.abandoned[0].at+endTolerance {
		l.abandoned = l.abandoned[1:]
		return false
	}
	l.abandoned = nil
	return len(l.requests) > 0
}

// settle makes r the answer to the oldest request. It also returns the answers that waited for this one.
func (l *tracker) settle(r pipeline.Result) []pipeline.Result {
	r.Final, r.Finalized = true, true
	l.markDelivered(r)
	l.answeredAt, l.requests = l.requests[0].seq, l.requests[1:]
	if len(l.requests) > 0 && l.requests[0].result != nil {
		return append([]pipeline.Result{r}, l.settle(*l.requests[0].result)...)
	}
	return []pipeline.Result{r}
}

// onTimeout answers overdue requests with the interim text so far, or with no text. It returns
// errSilent after maxSilent successive requests without any message from the provider.
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

// undelivered returns r without the words already delivered, by their times. A word that crosses
// settledUpTo counts as delivered if its middle lies before settledUpTo.
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
