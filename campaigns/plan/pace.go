package plan

import (
	"cmp"
	"slices"
	"time"
)

// A Pace spaces the calls of a campaign evenly: one call per minute / PerMinute.
type Pace struct {
	PerMinute int
	// Next is when the next call is due; zero before the first.
	Next time.Time
	// Last is when the last call left.
	Last time.Time
}

// every returns the time between two calls.
func (p Pace) every() time.Duration { return time.Minute / time.Duration(max(p.PerMinute, 1)) }

// Earliest returns when the next call may leave: when it is due, and at least two
// thirds of the interval after the last one.
func (p Pace) Earliest() time.Time {
	if soonest := p.Last.Add(p.every() * 2 / 3); soonest.After(p.Next) {
		return soonest
	}
	return p.Next
}

// IsDue reports whether a call may leave.
func (p Pace) IsDue(at time.Time) bool { return !at.Before(p.Earliest()) }

// maxCatchUp bounds the delay that a pace makes up for; a busy machine or database causes such delays. A minute
// therefore has at most the calls of 62 seconds, plus one. A longer delay counts as time without a waiting contact.
const maxCatchUp = 2 * time.Second

// AfterCall returns the pace after a call. After a late call, the following calls leave up to 1.5 times as fast until
// the delay is made up for. Time without a contact to call is not made up for, so that there is no burst.
func (p Pace) AfterCall(at time.Time) Pace {
	next := p.Next.Add(p.every())
	if late := at.Sub(p.Next); late >= max(p.every(), maxCatchUp) || late < -p.every() {
		next = at.Add(p.every())
	}
	p.Next, p.Last = next, at
	return p
}

// A Turn is a campaign that wants to call.
type Turn struct {
	CampaignID string
	Pace       Pace
	N          int // index of the campaign; only the caller uses it
}

// SortTurns returns the due campaigns in the order in which they may take free channels. The campaign that has missed
// the most calls of its own pace is first. Campaigns that compete for the channels of a route share them in
// proportion to their paces.
func SortTurns(at time.Time, turns []Turn) []Turn {
	due := slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return !t.Pace.IsDue(at) })
	slices.SortStableFunc(due, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(b.missed(at), a.missed(at)), cmp.Compare(a.CampaignID, b.CampaignID))
	})
	return due
}

// missed counts the calls that the campaign could have made since its last one.
func (t Turn) missed(at time.Time) float64 {
	return float64(at.Sub(t.Pace.Last)) / float64(t.Pace.every())
}
