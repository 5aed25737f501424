// Package health tracks which addresses of carriers take calls. It is pure: the
// time is an argument.
package health

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Times and limits of a Tracker.
const (
	// ProbeInterval is the time between probes of an address that is up.
	ProbeInterval = 30 * time.Second
	// ProbeDownInterval is the time between probes of an address that is down.
	ProbeDownInterval = 5 * time.Second
	// downFor is the time after which a call may try an address that is down, although no probe has succeeded.
	downFor = 30 * time.Second
	// maxMissedProbes is the number of missed probes after which an address is
	// down.
	maxMissedProbes = 2
	// maxFirstPause bounds the pause after one Retry-After; maxPause bounds a
	// pause that was repeated or confirmed by probes.
	maxFirstPause = 30 * time.Second
	maxPause      = 10 * time.Minute
	// trialInterval is the time between calls to an address after its pause,
	// until it accepts one. Without a call the pause is forgotten after maxPause.
	trialInterval = 2 * time.Second
	maxAddresses  = 4096
)

// An Address is an address of a carrier over one transport.
type Address struct {
	Transport string
	At        netip.AddrPort
}

// A Status says whether calls may use an address.
type Status uint8

// Statuses, best first.
const (
	Up     Status = iota // calls may use it
	Down                 // the address did not answer recently: it is used only if no address is up
	Paused               // the address sent 503 with Retry-After: it gets no calls
)

// A State describes a tracked address.
type State struct {
	Address Address
	Status  Status
	Since   time.Time // when the status last changed
	Reason  string    // why the address is not up
	Until   time.Time // when the address may be tried again; zero while it is up
}

type entry struct {
	state        State
	missedProbes int
	// The fields below are set from a Retry-After until a call is accepted.
	pausedAt       time.Time // time of the last Retry-After; zero for none
	requestedUntil time.Time // end of the requested pause
	triedAt        time.Time // when the last call after the pause was sent
}

func (e *entry) status(now time.Time) Status {
	switch {
	case now.Before(e.state.Until):
		return e.state.Status
	case e.isOnTrial(now) && now.Before(e.triedAt.Add(trialInterval)):
		return Paused
	default:
		return Up
	}
}

// isOnTrial reports whether the pause is over and no call was accepted since.
func (e *entry) isOnTrial(now time.Time) bool {
	return !e.pausedAt.IsZero() && now.Before(e.state.Until.Add(maxPause)) && !now.Before(e.state.Until)
}

// pausedUntil returns when the next call may try a paused address.
func (e *entry) pausedUntil(now time.Time) time.Time {
	if e.isOnTrial(now) {
		return e.triedAt.Add(trialInterval)
	}
	return e.state.Until
}

// A Tracker tracks up to 4,096 addresses. Unknown addresses are up. The zero
// value is ready; its methods are safe for concurrent use.
type Tracker struct {
	mu          sync.Mutex
	entries     map[Address]*entry
	pausedUntil time.Time // when no pause or trial remains
}

// Status returns the status of an address and, if it is paused, the end of the
// pause.
func (t *Tracker) Status(a Address, now time.Time) (v Status, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[a]
	if e == nil {
		return Up, time.Time{}
	}
	if v = e.status(now); v == Paused {
		until = e.pausedUntil(now)
	}
	return v, until
}

// Admit returns the status for a call that uses the address at once if it is up.
// After a pause it admits one call every 2 s, until one is accepted.
func (t *Tracker) Admit(a Address, now time.Time) Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[a]
	if e == nil {
		return Up
	}
	v := e.status(now)
	if v == Up && e.isOnTrial(now) {
		e.triedAt = now
	}
	return v
}

// AnyPaused reports whether an address asked for a pause and has accepted no call
// since.
func (t *Tracker) AnyPaused(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(t.pausedUntil)
}

// Lookup returns the status of a tracked address.
func (t *Tracker) Lookup(a Address, now time.Time) (v Status, ok bool) {
	t.mu.Lock()
	_, ok = t.entries[a]
	t.mu.Unlock()
	v, _ = t.Status(a, now)
	return v, ok
}

// RecordAnswer records any response to a request: the address is alive.
func (t *Tracker) RecordAnswer(a Address, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.getOrAdd(a, now)
	e.missedProbes = 0
	// A paused address stays paused although it answers.
	if e.state.Status == Down || !now.Before(e.state.Until) {
		e.set(Up, "", now, time.Time{})
	}
}

// RecordMissedProbe records a probe without an answer, or with a bad one, as
// reason states.
func (t *Tracker) RecordMissedProbe(a Address, reason string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.getOrAdd(a, now)
	if e.missedProbes++; e.missedProbes < maxMissedProbes {
		return
	}
	if e.status(now) == Paused && now.Before(e.requestedUntil) {
		t.pause(e, e.requestedUntil, now) // the probe confirms the pause
	}
	e.markDown(reason, now)
}

// RecordNoAnswer records a call without any response, or that could not be sent.
func (t *Tracker) RecordNoAnswer(a Address, reason string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.getOrAdd(a, now).markDown(reason, now)
}

// RecordRetryAfter records a response with Retry-After d to a request sent at sent. The first one pauses the address
// for at most 30 s, because it may concern only one call or be a mistake. If a request that was sent later gets a
// Retry-After too, the pause may last 10 minutes.
func (t *Tracker) RecordRetryAfter(a Address, d time.Duration, sent, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.getOrAdd(a, now)
	if !now.Before(e.state.Until.Add(maxPause)) {
		e.pausedAt = time.Time{} // the earlier pause has expired
	}
	repeated := !e.pausedAt.IsZero() && sent.After(e.pausedAt)
	first := e.pausedAt.IsZero()
	until, requested := now.Add(min(d, maxFirstPause)), now.Add(min(d, maxPause))
	if repeated {
		until = requested
	}
	if first || repeated {
		e.pausedAt = now
	}
	e.requestedUntil = later(e.requestedUntil, requested)
	if e.state.Status == Paused {
		until = later(until, e.state.Until)
	}
	t.pause(e, until, now)
}

func (t *Tracker) pause(e *entry, until, now time.Time) {
	e.set(Paused, "Retry-After", now, until)
	t.pausedUntil = later(t.pausedUntil, until.Add(maxPause))
}

// RecordAccepted records that a call sent at sent was accepted, which ends an
// earlier pause.
func (t *Tracker) RecordAccepted(a Address, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[a]; e != nil && sent.After(e.pausedAt) {
		e.pausedAt, e.requestedUntil, e.triedAt = time.Time{}, time.Time{}, time.Time{}
	}
}

func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// Prune removes all addresses except those in keep. An address that is down or
// paused stays until it may be used, or has accepted a call.
func (t *Tracker) Prune(keep map[Address]bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(keep, now)
}

func (t *Tracker) prune(keep map[Address]bool, now time.Time) {
	for a, e := range t.entries {
		if !keep[a] && !now.Before(e.state.Until) && !e.isOnTrial(now) {
			delete(t.entries, a)
		}
	}
}

// States returns all tracked addresses, sorted.
func (t *Tracker) States(now time.Time) []State {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]State, 0, len(t.entries))
	for _, e := range t.entries {
		s := e.state
		if s.Status = e.status(now); s.Status == Paused {
			s.Until = e.pausedUntil(now)
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

// getOrAdd must be called with the mutex held.
func (t *Tracker) getOrAdd(a Address, now time.Time) *entry {
	e := t.entries[a]
	if e == nil {
		if t.entries == nil {
			t.entries = map[Address]*entry{}
		}
		if len(t.entries) >= maxAddresses {
			t.prune(nil, now)
		}
		for other := range t.entries { // if none could be pruned, remove any address
			if len(t.entries) < maxAddresses {
				break
			}
			delete(t.entries, other)
		}
		e = &entry{state: State{Address: a, Since: now}}
		t.entries[a] = e
	}
	return e
}

func (e *entry) markDown(reason string, now time.Time) {
	if e.state.Status == Paused && now.Before(e.state.Until) {
		return // stay paused: a paused address gets no call at all, one that is down may get one
	}
	e.set(Down, reason, now, now.Add(downFor))
}

func (e *entry) set(v Status, reason string, now, until time.Time) {
	if e.state.Status != v {
		e.state.Since = now
	}
	e.state.Status, e.state.Reason, e.state.Until = v, reason, until
}
