// Package provider stands between a conversation and its providers: it bounds
// how many utterances, answers and streams a provider has at a time, leaves one
// alone that fails, and asks another in its place.
package provider

import "time"

const (
	// tolerated is how many failures in a row close a provider off.
	tolerated = 5
	// firstPause is how long it is then left alone, and longPause, after
	// probes that failed, at most.
	firstPause = 5 * time.Second
	longPause  = 10 * time.Second
)

// A Breaker decides whether a provider is asked. It is closed at first; after
// tolerated failures in a row it opens, and nobody asks for a while; then one
// may try, the probe. Its first sign of life closes the breaker, its failure
// leaves it open for longer. What was asked before it opened changes nothing any
// more. It is pure: times come in from outside.
type Breaker struct {
	failures int
	open     bool
	until    time.Time     // while open
	pause    time.Duration // the last one; 0 once the provider worked
	probe    *Token        // who tries
}

// A Token is the leave to ask a provider once.
type Token struct{ _ byte }

// Allow returns the leave to ask the provider, nil where it is not to be asked.
// Who has it must tell Done what came of it, and may tell it more than once:
// that it is Alive, and how it ended.
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

// Stands tells how it stands: closed, or open until some time, after which one may try,
// or one is trying.
func (b *Breaker) Stands() (open, tried bool, until time.Time) {
	return b.open, b.open && b.probe != nil, b.until
}

// An Ending is what came of asking a provider.
type Ending int

// Endings.
const (
	Worked Ending = iota
	Failed
	Abandoned // by who asked, or wrongly asked; it tells nothing about the provider
	Alive     // it is no ending yet: the provider began to answer
)

// Done notes what came of asking. alone is how long the provider itself wants to
// be left alone; 0 where it does not say.
func (b *Breaker) Done(t *Token, e Ending, now time.Time, alone time.Duration) {
	if b.open && t != b.probe { // it was asked before the breaker opened
		if e == Failed && alone > 0 {
			b.until = later(b.until, now.Add(alone))
		}
		return
	}
	b.probe = nil
	switch e {
	case Abandoned:
	case Alive: // others may ask; that the answer ends well is yet to be seen
		if b.open {
			b.open, b.failures = false, 0
		}
	case Worked:
		*b = Breaker{}
	case Failed:
		b.failures++
		if b.open || b.failures >= tolerated || alone > 0 {
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
