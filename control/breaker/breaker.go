// Package breaker decides whether calls that can wait are kept off a route
// because calls through it fail, and when one may try it again. It is pure: the
// instant and what was seen come in.
package breaker

import (
	"slices"
	"time"
)

// Rules are when a breaker opens, and how it is tried whether it may close.
type Rules struct {
	// Share, in percent, of the last calls must be exceeded by those that failed;
	// 100 never is.
	Share int
	// Least is of how many calls at least a share is taken, and Most of how many
	// at most: the last ones.
	Least, Most int
	// Window is how old a call may be to count.
	Window time.Duration
	// First is the time from the opening to the first probe; it doubles with each
	// probe that fails, up to Longest.
	First, Longest time.Duration
}

// Usual are the rules where nothing is set.
func Usual() Rules {
	return Rules{Share: 50, Least: 10, Most: 40, Window: 10 * time.Minute, First: 10 * time.Second, Longest: 5 * time.Minute}
}

// Why a breaker is open.
type Why string

// Reasons.
const (
	Failures    Why = "failures"    // calls through the route fail
	Unreachable Why = "unreachable" // no proxy of its trunk takes calls, as far as any node sees
)

// A Probe is how it stands with the call that tries a route.
type Probe uint8

// Probes.
const (
	None   Probe = iota // there is none
	On                  // nothing is known of it yet
	Passed              // it got through
	Failed              // the route failed it
	Gone                // it tells nothing: it never left, say
)

// A State is what is kept of a breaker. Its zero value is closed.
type State struct {
	Open    bool
	Why     Why       // it is open
	Since   time.Time // of the last opening or closing
	Wait    time.Duration
	ProbeAt time.Time // from when on one call may try the route
	Probing bool      // one does
}

// Seen is what is known of a route at an instant.
type Seen struct {
	// Good and Bad are the last calls by whether they got through, of those that
	// were made since the breaker closed.
	Good, Bad int
	// Unreachable tells that no node sees a proxy of the trunk that takes calls.
	Unreachable bool
	Probe       Probe
}

// Step is the state that follows.
func (r Rules) Step(at time.Time, s State, x Seen) State {
	if !s.Open {
		switch {
		case r.fails(x):
			return State{Open: true, Why: Failures, Since: at, Wait: r.First, ProbeAt: at.Add(r.First)}
		case x.Unreachable: // an address may be taken for dead that is not: one call may try at once
			return State{Open: true, Why: Unreachable, Since: at, Wait: r.First, ProbeAt: at}
		}
		return s
	}
	if s.Probing {
		s = r.probed(at, s, x)
	}
	if s.Open && !s.Probing && s.Why == Unreachable && !x.Unreachable {
		return State{Since: at}
	}
	return s
}

// fails tells whether too many of the last calls did.
func (r Rules) fails(x Seen) bool {
	all := x.Good + x.Bad
	return all >= max(r.Least, 1) && 100*x.Bad > r.Share*all
}

// probed is the state after a look at the probe under way.
func (r Rules) probed(at time.Time, s State, x Seen) State {
	switch x.Probe {
	case Passed:
		return State{Since: at}
	case Failed:
		s.Probing = false
		s.ProbeAt = at.Add(s.Wait)
		s.Wait = min(2*s.Wait, max(r.Longest, r.First))
		if !x.Unreachable { // its proxies answer, and calls fail all the same
			s.Why = Failures
		}
	case Gone, None:
		s.Probing = false
		s.ProbeAt = at
	case On:
	}
	return s
}

// Faults are the reasons for the end of a call that nobody's phone rang for which
// are the route's: the carrier failed, asked to be left alone, did not know us,
// would not have the call, or sent it elsewhere. A party that is busy, away, or
// has no such number is no fault of the route.
func Faults() []string {
	return []string{"route_error", "congestion", "auth_failed", "blocked", "redirect_refused"}
}

// timedOut is the status of a request that nobody answered in time.
const timedOut = 408

// Fault tells whether a call that failed for a reason, with the final SIP status
// or 0, did so for the route.
func Fault(reason string, status int, rang bool) bool {
	if rang {
		return false
	}
	if reason == "no_answer" {
		return status == 0 || status == timedOut
	}
	return slices.Contains(Faults(), reason)
}

// Reached tells whether a call that nobody answered, and that ended for a reason,
// got through all the same: the route is well.
func Reached(reason string, status int, rang bool) bool {
	if rang {
		return true
	}
	switch reason {
	case "busy", "declined", "invalid_number", "no_answer":
		return !Fault(reason, status, rang)
	}
	return false
}
