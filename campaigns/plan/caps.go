package plan

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// An Override is what an organization says of its frequency caps; nil says
// nothing. It stands in for what the market has by default, never for the law.
type Override struct {
	Enabled          *bool
	Daily, Rolling7d *int
}

// Caps are those that hold for calls to a place, of the law and of the policy.
func Caps(p *market.Package, place market.Place, class market.Classification, o Override) []market.Cap {
	off := o.Enabled != nil && !*o.Enabled
	own := map[string]*int{market.CapDaily: o.Daily, market.CapRolling7d: o.Rolling7d}
	var all []market.Cap
	for _, c := range p.Caps(place, class) {
		if c.Source != market.FromLaw && (off || own[c.Kind] != nil) {
			continue
		}
		all = append(all, c)
	}
	for _, kind := range []string{market.CapDaily, market.CapRolling7d} {
		if off || own[kind] == nil {
			continue
		}
		within := 24 * time.Hour
		if kind == market.CapRolling7d {
			within = 7 * 24 * time.Hour
		}
		all = append(all, market.Cap{
			Kind: kind, Most: *own[kind], Within: within, Source: market.FromOrganization,
			CalendarDay: kind == market.CapDaily && p.CalendarDay(),
		})
	}
	return all
}

// A History is what an organization did with a number, in all its campaigns
// and calls.
type History struct {
	// Dials are the instants at which a request left, in order, busy ones too.
	Dials []time.Time
	// Talked is the last conversation.
	Talked time.Time
}

// A Hold is a cap that keeps a number from being called.
type Hold struct {
	Cap   string    // its kind; empty where none does
	Frees time.Time // when it does so no more; zero: never
	Rule  string
}

// Held is the cap that keeps a number from being called for longest. Zones are
// those in which its party may be, for caps of a calendar day.
func Held(at time.Time, caps []market.Cap, h History, zones []*time.Location) Hold {
	var held Hold
	for _, c := range caps {
		frees, ok := frees(at, c, h, zones)
		if ok && (held.Cap == "" || !held.Frees.IsZero() && (frees.IsZero() || frees.After(held.Frees))) {
			held = Hold{Cap: c.Kind, Frees: frees, Rule: c.Rule}
		}
	}
	return held
}

// frees is when a cap that holds at an instant holds no more, and whether it does.
func frees(at time.Time, c market.Cap, h History, zones []*time.Location) (time.Time, bool) {
	switch {
	case c.Kind == market.CapPostConversation:
		end := h.Talked.Add(c.Within)
		return end, !h.Talked.IsZero() && end.After(at)
	case c.Most <= 0:
		return time.Time{}, true
	case c.CalendarDay:
		return freesAtMidnight(at, c, h, zones)
	case len(h.Dials) < c.Most:
		return time.Time{}, false
	}
	// The oldest of those that fill the cap has to leave it.
	end := h.Dials[len(h.Dials)-c.Most].Add(c.Within)
	return end, end.After(at)
}

// freesAtMidnight looks at the day of each zone: the last to end counts.
func freesAtMidnight(at time.Time, c market.Cap, h History, zones []*time.Location) (end time.Time, held bool) {
	for _, zone := range zones {
		local := at.In(zone)
		today := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, zone)
		first, _ := slices.BinarySearchFunc(h.Dials, today, time.Time.Compare)
		if len(h.Dials)-first < c.Most {
			continue
		}
		held = true
		if midnight := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone); midnight.After(end) {
			end = midnight
		}
	}
	return end, held
}

// Remembered is for how long the dials of a number must be known to hold caps
// to them.
func Remembered(caps []market.Cap) time.Duration {
	var most time.Duration
	for _, c := range caps {
		within := c.Within
		if c.CalendarDay {
			within = 26 * time.Hour // a day in which the clock goes back, and some
		}
		most = max(most, within)
	}
	return most
}
