// Package provider guards the providers of a conversation. It limits concurrent requests
// per provider, stops requests to a failing one with a circuit breaker, and uses the
// fallback instead.
package provider

import "time"

const (
	// maxFailures is the number of successive failures that opens a breaker.
	maxFailures = 5
	// firstPause is the initial time that a breaker stays open; longPause bounds the time
	// after failed probes.
	firstPause = 5 * time.Second
	longPause  = 10 * time.Second
)

// A Breaker is a circuit breaker. It opens after maxFailures successive failures. After a pause it admits one
// request, the probe. The first response to the probe closes the breaker; a failure of the probe extends the pause.
// Results of requests made before the breaker opened are ignored. It is pure: the caller passes the time.
type Breaker struct {
	failures int
	open     bool
	until    time.Time     // while open: when the next probe is allowed
	pause    time.Duration // length of the last pause; 0 after a success
	probe    *Token        // the probe in progress; nil if none is
}

// A Token is the permission for one request.
type Token struct{ _ byte }

// Allow returns the permission for a request, or nil if the breaker is open. The holder
// must report the outcome to Done; it may first report Responding.
func (b *Breaker) Allow(now time.Time) *Token {
	t := &Token{}
	if b.open {
		if b.probe != nil || now.Before(b.until) {
			return nil
		}
		b.probe = t
	}
	return t
}

// State returns whether the breaker is open, whether a probe is running, and when the next
// probe is allowed.
func (b *Breaker) State() (open, tried bool, until time.Time) {
	return b.open, b.open && b.probe != nil, b.until
}

// An Outcome is the result of a request.
type Outcome int

// Outcomes.
const (
	Succeeded Outcome = iota
	Failed
	Neutral    // the request was canceled or invalid; the result says nothing about the provider
	Responding // the response has begun; a final outcome follows
)

// Done records an outcome. alone is the pause that the provider requested; 0 for none.
func (b *Breaker) Done(t *Token, e Outcome, now time.Time, alone time.Duration) {
	if b.open && t != b.probe { // the request began before the breaker opened
		if e == Failed && alone > 0 {
			b.until = later(b.until, now.Add(alone))
		}
		return
	}
	b.probe = nil
	switch e {
	case Neutral:
	case Responding: // the breaker closes now; a later failure of this response counts again
		if b.open {
			b.open, b.failures = false, 0
		}
	case Succeeded:
		*b = Breaker{}
	case Failed:
		b.failures++
		if b.open || b.failures >= maxFailures || alone > 0 {
			b.pause = min(max(2*b.pause, firstPause), longPause)
			b.open, b.until = true, now.Add(max(b.pause, alone))
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
