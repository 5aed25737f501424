// Package health remembers which of a carrier's addresses take calls, so that
// a call is not sent where the last one drowned. It is pure: time is an
// argument.
package health

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Times at which an address that is down is tried again.
const (
	// ProbeEvery is how often an address is asked how it is, while it is well.
	ProbeEvery = 30 * time.Second
	// ProbeDown is how often it is asked while it is down.
	ProbeDown = 5 * time.Second
	// tryAgain is when a call may try an address that is down, where no probe
	// found it well before.
	tryAgain = 30 * time.Second
	// misses are the probes without an answer after which an address is down.
	misses = 2
	// longest bounds what a Retry-After may ask for.
	longest = 10 * time.Minute
	// most bounds the addresses that something is known of.
	most = 4096
)

// An Address is a carrier's address over one transport.
type Address struct {
	Transport string
	At        netip.AddrPort
}

// A Verdict is what an address is good for now.
type Verdict uint8

// Verdicts, the best first.
const (
	Up     Verdict = iota // calls may go there
	Down                  // it did not answer lately: only where nothing is up
	Barred                // it asked to be left alone: not at all
)

// A State is what is known of an address.
type State struct {
	Address Address
	Verdict Verdict
	Since   time.Time // of the last change of the verdict
	Reason  string    // why it is not up
	Until   time.Time // when it may be tried again; zero while it is up
}

type entry struct {
	state  State
	missed int
}

// A Book is what is known of 4,096 addresses at most. Its zero value knows
// nothing, and what it does not know is up. It may be used by any goroutine.
type Book struct {
	mu      sync.Mutex
	entries map[Address]*entry
}

// Verdict is what an address is good for at now.
func (b *Book) Verdict(a Address, now time.Time) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[a]
	if e == nil || !now.Before(e.state.Until) {
		return Up
	}
	return e.state.Verdict
}

// Known is the verdict of an address of which something is known.
func (b *Book) Known(a Address, now time.Time) (v Verdict, ok bool) {
	b.mu.Lock()
	_, ok = b.entries[a]
	b.mu.Unlock()
	return b.Verdict(a, now), ok
}

// Answered notes that an address answered a request: it lives.
func (b *Book) Answered(a Address, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(a, now)
	e.missed = 0
	// Whoever asks to be left alone still answers.
	if e.state.Verdict == Down || !now.Before(e.state.Until) {
		e.set(Up, "", now, time.Time{})
	}
}

// Missed notes a probe that had no answer, or one that is no better: reason says
// which.
func (b *Book) Missed(a Address, reason string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(a, now)
	if e.missed++; e.missed >= misses {
		e.down(reason, now)
	}
}

// Silent notes a call that had no answer at all, or could not be sent.
func (b *Book) Silent(a Address, reason string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(a, now).down(reason, now)
}

// Bar notes that an address asked to be left alone for so long.
func (b *Book) Bar(a Address, d time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(a, now).set(Barred, "Retry-After", now, now.Add(min(d, longest)))
}

// Forget drops what is known of all but the addresses given. What keeps calls
// away from an address stays for as long as it does.
func (b *Book) Forget(but map[Address]bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(but, now)
}

// forget needs b.mu.
func (b *Book) forget(but map[Address]bool, now time.Time) {
	for a, e := range b.entries {
		if !but[a] && !now.Before(e.state.Until) {
			delete(b.entries, a)
		}
	}
}

// States lists what is known, by address.
func (b *Book) States(now time.Time) []State {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]State, 0, len(b.entries))
	for _, e := range b.entries {
		s := e.state
		if s.Verdict != Up && !now.Before(s.Until) {
			s.Verdict = Up // it may be tried again
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y State) int {
		if c := x.Address.At.Compare(y.Address.At); c != 0 {
			return c
		}
		return len(x.Address.Transport) - len(y.Address.Transport)
	})
	return list
}

// entry needs b.mu.
func (b *Book) entry(a Address, now time.Time) *entry {
	e := b.entries[a]
	if e == nil {
		if b.entries == nil {
			b.entries = map[Address]*entry{}
		}
		if len(b.entries) >= most {
			b.forget(nil, now)
		}
		for other := range b.entries { // where all of them are away: any
			if len(b.entries) < most {
				break
			}
			delete(b.entries, other)
		}
		e = &entry{state: State{Address: a, Since: now}}
		b.entries[a] = e
	}
	return e
}

func (e *entry) down(reason string, now time.Time) {
	if e.state.Verdict == Barred && now.Before(e.state.Until) {
		return // barred says more
	}
	e.set(Down, reason, now, now.Add(tryAgain))
}

func (e *entry) set(v Verdict, reason string, now, until time.Time) {
	if e.state.Verdict != v {
		e.state.Since = now
	}
	e.state.Verdict, e.state.Reason, e.state.Until = v, reason, until
}
