// Package circuitbreaker decides when calls that can wait must avoid a failing route, and when one of them may
// test it. It is pure: time and observations are arguments.
package circuitbreaker

import (
	"slices"
	"time"
)

// Rules state when a breaker opens, and how it is tested before it closes.
type Rules struct {
	// Share opens the breaker if more than this percentage of the last calls failed; 100 disables it.
	Share int
	// The share is taken of the last MaxCalls calls, and of MinCalls at least.
	MinCalls, MaxCalls int
	// MinFailures is the least number of failures; 0 means no minimum.
	MinFailures int
	// Window is the age up to which a call counts.
	Window time.Duration
	// First is the time from the opening to the first probe. It doubles with each failed probe, up to Longest.
	First, Longest time.Duration
}

// DefaultRules returns the rules for routes.
func DefaultRules() Rules {
	return Rules{Share: 50, MinCalls: 10, MaxCalls: 40, Window: 10 * time.Minute, First: 10 * time.Second, Longest: 5 * time.Minute}
}

// CampaignRules returns the rules by which a campaign holds itself after calls that failed because of this service.
// US law allows 3 % of calls to be abandoned (47 CFR 64.1200(a)(7)).
func CampaignRules() Rules {
	return Rules{Share: 3, MinFailures: 3, MaxCalls: 100, First: 10 * time.Second, Longest: 5 * time.Minute}
}

// A Reason states why a breaker is open.
type Reason string

// Reasons.
const (
	Failures    Reason = "failures"    // calls through the route fail
	Unreachable Reason = "unreachable" // no node sees a proxy of the trunk that takes calls
)

// A Probe is the state of the call that tests a route.
type Probe uint8

// Probes.
const (
	None   Probe = iota // no probe
	On                  // no result yet
	Passed              // the route works
	Failed              // the route failed
	Gone                // no result, for example because it was never sent
)

// A State is the state of a breaker. Its zero value is closed.
type State struct {
	Open    bool
	Why     Reason    // why it is open
	Since   time.Time // time of the last opening or closing
	Wait    time.Duration
	ProbeAt time.Time // from this time on one call may test the route
	Probing bool      // a probe is under way
}

// An Observation is the state of a route at one time.
type Observation struct {
	// Good and Bad count the last calls since the breaker closed, by whether the route worked.
	Good, Bad int
	// Unreachable reports that no node sees a proxy of the trunk that takes calls.
	Unreachable bool
	Probe       Probe
}

// Step returns the next state.
func (r Rules) Step(at time.Time, s State, x Observation) State {
	if !s.Open {
		switch {
		case r.hasFailed(x):
			return State{Open: true, Why: Failures, Since: at, Wait: r.First, ProbeAt: at.Add(r.First)}
		case x.Unreachable: // an address may wrongly count as down: one call may test at once
			return State{Open: true, Why: Unreachable, Since: at, Wait: r.First, ProbeAt: at}
		}
		return s
	}
	if s.Probing {
		s = r.afterProbe(at, s, x)
	}
	if s.Open && !s.Probing && s.Why == Unreachable && !x.Unreachable {
		return State{Since: at}
	}
	return s
}

// hasFailed reports whether too many of the last calls failed.
func (r Rules) hasFailed(x Observation) bool {
	all := x.Good + x.Bad
	return all >= max(r.MinCalls, 1) && x.Bad >= r.MinFailures && 100*x.Bad > r.Share*all
}

// afterProbe returns the next state while a probe is under way.
func (r Rules) afterProbe(at time.Time, s State, x Observation) State {
	switch x.Probe {
	case Passed:
		return State{Since: at}
	case Failed:
		s.Probing = false
		s.ProbeAt = at.Add(s.Wait)
		s.Wait = min(2*s.Wait, max(r.Longest, r.First))
		if !x.Unreachable { // its proxies respond, but calls fail
			s.Why = Failures
		}
	case Gone, None:
		s.Probing = false
		s.ProbeAt = at
	case On:
	}
	return s
}

// RouteFaults returns the end reasons of calls that did not ring because of the route: the carrier failed, asked for
// a pause, rejected the credentials or the call, or redirected it. A busy, absent or unknown callee is not a
// fault of the route.
func RouteFaults() []string {
	return []string{"route_error", "congestion", "auth_failed", "blocked", "redirect_refused"}
}

// timedOut is the status of a request without a response in time.
const timedOut = 408

// IsRouteFault reports whether a call failed because of the route, by its end reason and its final SIP status (0: none).
func IsRouteFault(reason string, status int, rang bool) bool {
	if rang {
		return false
	}
	if reason == "no_answer" {
		return status == 0 || status == timedOut
	}
	return slices.Contains(RouteFaults(), reason)
}

// IsReached reports whether an unanswered call proves that the route works.
func IsReached(reason string, status int, rang bool) bool {
	if rang {
		return true
	}
	switch reason {
	case "busy", "declined", "invalid_number", "no_answer":
		return !IsRouteFault(reason, status, rang)
	}
	return false
}
