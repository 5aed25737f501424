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
	longPause  = time.Minute
)

// A Breaker decides whether a provider is asked. It is closed at first; after
// tolerated failures in a row it opens, and nobody asks for a while; then one
// may try, and what comes of it closes the breaker or opens it for longer. It
// is pure: times come in from outside.
type Breaker struct {
	failures int
	until    time.Time // while open
	pause    time.Duration
	probing  bool // somebody tries
}

// Allow tells whether the provider may be asked. Who is allowed must tell Done
// what came of it.
func (b *Breaker) Allow(now time.Time) bool {
	switch {
	case b.pause == 0:
		return true
	case b.probing || now.Before(b.until):
		return false
	}
	b.probing = true
	return true
}

// An Ending is what came of asking a provider.
type Ending int

// Endings.
const (
	Worked Ending = iota
	Failed
	Abandoned // by who asked; it tells nothing about the provider
)

// Done notes what came of asking. alone is how long the provider itself wants to
// be left alone; 0 where it does not say.
func (b *Breaker) Done(e Ending, now time.Time, alone time.Duration) {
	switch e {
	case Abandoned:
		b.probing = false
	case Worked:
		*b = Breaker{}
	case Failed:
		b.failures++
		if b.probing || b.failures >= tolerated || alone > 0 {
			b.pause = min(max(2*b.pause, firstPause), longPause)
			b.until = now.Add(max(b.pause, alone))
		}
		b.probing = false
	}
}
