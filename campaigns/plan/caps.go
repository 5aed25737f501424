package plan

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// An Override has the frequency caps of an organization; nil means not set. It replaces
// the market's default caps, never those of the law.
type Override struct {
	Enabled          *bool
	Daily, Rolling7d *int
}

// Caps returns the caps of the law and of the policy for calls to a location. The policy is the organization's
// override, else the market's default.
func Caps(p *market.Package, place market.Location, class market.Classification, o Override) []market.Cap {
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
			CalendarDay: kind == market.CapDaily && p.CountsByCalendarDay(),
		})
	}
	return all
}

// A History is the past calls of an organization to a number, in campaigns and single calls.
type History struct {
	// Dials are the times of all INVITEs in order, including busy ones.
	Dials []time.Time
	// Talked is the end of the last conversation.
	Talked time.Time
}

// A Hold is a cap that forbids calls to a number.
type Hold struct {
	Cap   string    // kind of the cap; empty for none
	Until time.Time // zero means without end
	Rule  string
}

// FindHold returns the cap that holds a number longest. zones are the possible time zones of the callee, for caps per
// calendar day.
func FindHold(at time.Time, caps []market.Cap, h History, zones []*time.Location) Hold {
	var hold Hold
	for _, c := range caps {
		end, ok := holdEnd(at, c, h, zones)
		if ok && (hold.Cap == "" || !hold.Until.IsZero() && (end.IsZero() || end.After(hold.Until))) {
			hold = Hold{Cap: c.Kind, Until: end, Rule: c.Rule}
		}
	}
	return hold
}

// holdEnd returns until when a cap forbids calls to a number, zero for always, and whether it forbids a call at the
// instant at.
func holdEnd(at time.Time, c market.Cap, h History, zones []*time.Location) (time.Time, bool) {
	switch {
	case c.Kind == market.CapPostConversation:
		end := h.Talked.Add(c.Within)
		return end, !h.Talked.IsZero() && end.After(at)
	case c.Most <= 0:
		return time.Time{}, true
	case c.CalendarDay:
		return holdEndAtMidnight(at, c, h, zones)
	case len(h.Dials) < c.Most:
		return time.Time{}, false
	}
	// The next dial is allowed once the c.Most-th last dial is older than c.Within.
	end := h.Dials[len(h.Dials)-c.Most].Add(c.Within)
	return end, end.After(at)
}

// holdEndAtMidnight applies a cap to the calendar day of each zone. It returns the end of the day that ends last.
func holdEndAtMidnight(at time.Time, c market.Cap, h History, zones []*time.Location) (end time.Time, holds bool) {
	for _, zone := range zones {
		local := at.In(zone)
		today := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, zone)
		first, _ := slices.BinarySearchFunc(h.Dials, today, time.Time.Compare)
		if len(h.Dials)-first < c.Most {
			continue
		}
		holds = true
		if midnight := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone); midnight.After(end) {
			end = midnight
		}
	}
	return end, holds
}

// DialHistory returns how far back dials must be known to apply caps.
func DialHistory(caps []market.Cap) time.Duration {
	var most time.Duration
	for _, c := range caps {
		within := c.Within
		if c.CalendarDay {
			within = 26 * time.Hour // a day with a clock change may have 25 hours
		}
		most = max(most, within)
	}
	return most
}
