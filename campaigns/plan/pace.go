package plan

import (
	"cmp"
	"slices"
	"time"
)

// A Pace spaces the calls of a campaign evenly: one every minute / PerMinute.
type Pace struct {
	PerMinute int
	// Next is the instant at which the next call is due; zero before the first.
	Next time.Time
	// Last is when the last call left.
	Last time.Time
}

// every is the time between two calls.
func (p Pace) every() time.Duration { return time.Minute / time.Duration(max(p.PerMinute, 1)) }

// Earliest is when the next call may leave: when it is due, and not on the heels
// of the one before.
func (p Pace) Earliest() time.Time {
	if soonest := p.Last.Add(p.every() * 2 / 3); soonest.After(p.Next) {
		return soonest
	}
	return p.Next
}

// Due tells whether a call may leave at an instant.
func (p Pace) Due(at time.Time) bool { return !at.Before(p.Earliest()) }

// longestLate is for how long a pace may have been held up, by a machine or a
// database that was busy, to be caught up with: no minute has more calls than 62
// seconds of the pace, and one. Who is later had nobody to call.
const longestLate = 2 * time.Second

// Spent is the pace after a call at an instant. Calls that follow one that left
// late leave up to half as fast again, until what was lost is made up for. What was
// missed for want of somebody to call is not: there is no burst.
func (p Pace) Spent(at time.Time) Pace {
	next := p.Next.Add(p.every())
	if late := at.Sub(p.Next); late >= max(p.every(), longestLate) || late < -p.every() {
		next = at.Add(p.every())
	}
	p.Next, p.Last = next, at
	return p
}

// A Turn is a campaign that wants to call, and how it stands to the others.
type Turn struct {
	CampaignID string
	Pace       Pace
	N          int // by which who asks knows it
}

// Order puts campaigns in the order in which they may take free lines: first
// who waits for longest, measured in calls of its own pace. Campaigns that
// share a route which is too narrow for them share it about in proportion to
// their paces.
func Order(at time.Time, turns []Turn) []Turn {
	due := slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return !t.Pace.Due(at) })
	slices.SortStableFunc(due, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(b.missed(at), a.missed(at)), cmp.Compare(a.CampaignID, b.CampaignID))
	})
	return due
}

// missed is how many calls a campaign could have made since its last one.
func (t Turn) missed(at time.Time) float64 {
	return float64(at.Sub(t.Pace.Last)) / float64(t.Pace.every())
}
