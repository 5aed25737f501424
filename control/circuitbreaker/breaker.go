// Package circuitbreaker decides when calls that can wait avoid a failing route, and when one call may test whether the
// route works again. It uses no clock and no database: time and observations are arguments.
package circuitbreaker

import (
	"slices"
	"time"
)

// Rules define when a breaker opens and when a probe may run. A probe is a single call that tests whether the breaker
// can close.
type Rules struct {
	// Share is a percentage. The breaker opens if a larger share of the last calls failed; 100 disables this check.
	Share int
	// The share is computed from the last MaxCalls calls. With fewer than MinCalls calls the breaker stays closed.
	MinCalls, MaxCalls int
	// MinFailures is the minimum number of failures that opens the breaker; 0 means no minimum.
	MinFailures int
	// Window is the maximum age of the calls that count.
	Window time.Duration
	// First is the time from the opening of the breaker to the first probe. Each failed probe doubles the time, up to
	// Longest.
	First, Longest time.Duration
}

// DefaultRules returns the rules for the routes of trunks.
func DefaultRules() Rules {
	return Rules{Share: 50, MinCalls: 10, MaxCalls: 40, Window: 10 * time.Minute, First: 10 * time.Second, Longest: 5 * time.Minute}
}

// CampaignRules returns the rules that pause a campaign when its calls fail because of Parley or a provider. US law allows 3%
// of a campaign's answered calls to be abandoned (47 CFR 64.1200(a)(7)).
func CampaignRules() Rules {
	return Rules{Share: 3, MinFailures: 3, MaxCalls: 100, First: 10 * time.Second, Longest: 5 * time.Minute}
}

// Reason says why a breaker is open.
type Reason string

// Reasons for an open breaker.
const (
	Failures    Reason = "failures"    // too many calls through the route failed
	Unreachable Reason = "unreachable" // no node can reach a proxy of the trunk
)

// Probe is the state of the call that tests a route.
type Probe uint8

// States of a probe.
const (
	None   Probe = iota // no probe
	On                  // the probe has no result yet
	Passed              // the probe showed that the route works
	Failed              // the probe showed that the route fails
	Gone                // the probe ended without a result, for example because its INVITE was never sent
)

// State is the state of a breaker. The zero value is a closed breaker.
type State struct {
	Open    bool
	Why     Reason    // reason for being open
	Since   time.Time // time at which the breaker last opened or closed
	Wait    time.Duration
	ProbeAt time.Time // time from which one call may test the route
	Probing bool      // a probe is running
}

// Observation is what is known about a route at one moment.
type Observation struct {
	// Good and Bad are the numbers of recent calls for which the route worked or failed. Calls before the breaker last
	// closed do not count.
	Good, Bad int
	// Unreachable reports that no node can reach a proxy of the trunk.
	Unreachable bool
	Probe       Probe
}

// Step returns the state that follows s, at time at, after observation x.
func (r Rules) Step(at time.Time, s State, x Observation) State {
	if !s.Open {
		switch {
		case r.hasFailed(x):
			return State{Open: true, Why: Failures, Since: at, Wait: r.First, ProbeAt: at.Add(r.First)}
		case x.Unreachable: // the proxies may have recovered, so a probe may start at once
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

// afterProbe returns the state that follows s while a probe is running.
func (r Rules) afterProbe(at time.Time, s State, x Observation) State {
	switch x.Probe {
	case Passed:
		return State{Since: at}
	case Failed:
		s.Probing = false
		s.ProbeAt = at.Add(s.Wait)
		s.Wait = min(2*s.Wait, max(r.Longest, r.First))
		if !x.Unreachable { // the proxies respond, but calls fail
			s.Why = Failures
		}
	case Gone, None:
		s.Probing = false
		s.ProbeAt = at
	case On:
	}
	return s
}

// RouteFaults returns the end reasons that count as a fault of the route: the carrier failed, asked for a pause,
// rejected the credentials or the call, or redirected it. A callee who is busy, absent or unknown is not a fault of
// the route.
func RouteFaults() []string {
	return []string{"route_error", "congestion", "auth_failed", "blocked", "redirect_refused"}
}

// timedOut is SIP status 408: no response came in time.
const timedOut = 408

// IsRouteFault reports whether a call failed because of its route. status is the final SIP status, or 0 if there was
// none.
func IsRouteFault(reason string, status int, rang bool) bool {
	if rang {
		return false
	}
	if reason == "no_answer" {
		return status == 0 || status == timedOut
	}
	return slices.Contains(RouteFaults(), reason)
}

// IsReached reports whether an unanswered call proves that its route works.
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
