package plan

import (
	"cmp"
	"slices"
	"time"
)

// A Pace spaces the calls of a campaign evenly: one every minute / PerMinute.
type Pace struct {
	PerMinute int
	// Next is the instant of the next call; zero before the first.
	Next time.Time
}

// every is the time between two calls.
func (p Pace) every() time.Duration { return time.Minute / time.Duration(max(p.PerMinute, 1)) }

// Due tells whether a call may leave at an instant.
func (p Pace) Due(at time.Time) bool { return !at.Before(p.Next) }

// longestLate is for how long a pace may have been held up, by a machine or a
// database that was busy, to be caught up with. Who is later had nobody to call.
const longestLate = 5 * time.Second

// Spent is the pace after a call at an instant. Calls that follow one that left
// late leave up to twice as close, until what was lost is made up for. What was
// missed for want of somebody to call is not: there is no burst.
func (p Pace) Spent(at time.Time) Pace {
	next := p.Next.Add(p.every())
	switch late := at.Sub(p.Next); {
	case late >= max(p.every(), longestLate) || late < -p.every():
		next = at.Add(p.every())
	case next.Sub(at) < p.every()/2:
		next = at.Add(p.every() / 2)
	}
	p.Next = next
	return p
}

// A Turn is a campaign that wants to call, and how it stands to the others.
type Turn struct {
	CampaignID string
	Pace       Pace
	Last       time.Time // of its calls
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
	return float64(at.Sub(t.Last)) / float64(t.Pace.every())
}
