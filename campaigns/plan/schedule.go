// Package plan decides when a contact may be called, and which contact a campaign calls next. It is pure: it computes
// a decision and its reason from the time, the rules and the history. The dialer and the simulation share it.
package plan

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// Hold reasons of a waiting contact. If several apply, the first in Reasons is reported.
const (
	NotRunning       = "campaign_not_running"
	NoMarket         = "market_package_not_installed" // no market, or another market than the campaign's
	FrequencyCap     = "frequency_cap"
	OutsideLaw       = market.OutsideWindow
	LegalHoliday     = market.OnHoliday
	OutsideHours     = "outside_working_hours"
	ZoneUnresolved   = market.NoZone
	RetryWait        = "retry_wait"
	NotBefore        = "not_before"
	ScreenStale      = "dnc_screen_stale"
	CarrierPaused    = "carrier_paused" // the carrier asked for a pause
	RouteUnavailable = "route_unavailable"
	// No node can use the speech-to-text, model and voice of the agent.
	ProviderUnavailable = "provider_unavailable"
	// Too many calls of the campaign broke because of Parley or a provider.
	TooManyFailures = "too_many_failures"
	// The calls are recorded, and disk space is low.
	RecordingUnavailable = "recording_unavailable"
	// Not all nodes have reported the calls that they sent before a database failover.
	DatabaseFailover = "database_failover"
)

// Reasons returns all hold reasons in the order of precedence.
func Reasons() []string {
	return []string{
		NotRunning, NoMarket, FrequencyCap, OutsideLaw, LegalHoliday,
		OutsideHours, ZoneUnresolved, RetryWait, NotBefore, ScreenStale, CarrierPaused,
		RouteUnavailable, ProviderUnavailable, TooManyFailures, RecordingUnavailable, DatabaseFailover,
	}
}

// A Slot is a period in which calls are allowed, or in which they are forbidden for one reason.
type Slot struct {
	From, Until time.Time // From is inclusive, Until exclusive
	Reason      string    // empty means that calls are allowed
	Rule        string    // the statute that forbids calls, if one does
}

// IsOpen reports whether calls are allowed.
func (s Slot) IsOpen() bool { return s.Reason == "" }

// contains reports whether an instant is in the slot.
func (s Slot) contains(at time.Time) bool { return !at.Before(s.From) && at.Before(s.Until) }

// maxSlot bounds the length of a slot.
const maxSlot = 36 * time.Hour

// slotAround returns the slot that begins at an instant and ends at the first edge with another reason, or after
// maxSlot.
func slotAround(at time.Time, edges []time.Time, reasonAt func(time.Time) (reason, rule string)) Slot {
	reason, rule := reasonAt(at)
	slot := Slot{From: at, Until: at.Add(maxSlot), Reason: reason, Rule: rule}
	slices.SortFunc(edges, time.Time.Compare)
	for i, edge := range edges {
		if i > 0 && edge.Equal(edges[i-1]) {
			continue
		}
		if r, _ := reasonAt(edge); r != reason {
			slot.Until = edge
			break
		}
	}
	return slot
}

// A law is the law for calls to one location. It caches the last slot.
type law struct {
	market *market.Package
	place  market.Location
	class  market.Classification
	slot   Slot
}

func (l *law) at(at time.Time) Slot {
	if !l.slot.contains(at) {
		l.slot = slotAround(at, l.market.Edges(at, maxSlot, l.place, l.class), func(t time.Time) (string, string) {
			v := l.market.Legal(t, l.place, l.class)
			return v.Reason, v.Rule
		})
	}
	return l.slot
}

// A LawCache caches the law for all campaigns. It is for one goroutine.
type LawCache struct {
	laws  map[lawKey]*law
	zones map[string]*time.Location
}

type lawKey struct {
	market *market.Package
	place  string
	class  market.Classification
}

// zone returns a zone by name, nil if unknown.
func (c *LawCache) zone(name string) *time.Location {
	zone, ok := c.zones[name]
	if !ok {
		zone, _ = time.LoadLocation(name) // nil on an error
		if c.zones == nil {
			c.zones = map[string]*time.Location{}
		}
		c.zones[name] = zone
	}
	return zone
}

// law returns the law of a location with the given key.
func (c *LawCache) law(p *market.Package, key string, place market.Location, class market.Classification) *law {
	if c.laws == nil {
		c.laws = map[lawKey]*law{}
	}
	of := lawKey{p, key, class}
	if c.laws[of] == nil {
		c.laws[of] = &law{market: p, place: place, class: class}
	}
	return c.laws[of]
}

// shifts are the hours of each weekday, Monday first, in a zone. They cache the last slot.
type shifts struct {
	zone *time.Location
	week [7][]market.Hours
	slot Slot
}

func (s *shifts) at(at time.Time) Slot {
	if s.slot.contains(at) {
		return s.slot
	}
	var clocks []market.Clock
	for _, day := range s.week {
		for _, h := range day {
			clocks = append(clocks, h.From, h.To)
		}
	}
	s.slot = slotAround(at, market.LocalEdges(at, maxSlot, s.zone, clocks), func(t time.Time) (string, string) {
		local := t.In(s.zone)
		if slices.ContainsFunc(s.week[market.Weekday(local)], func(h market.Hours) bool { return h.Contains(market.ClockOf(local)) }) {
			return "", ""
		}
		return OutsideHours, ""
	})
	return s.slot
}

// A schedule has the calling hours for one location and one campaign: by the law, the
// campaign's shifts and the organization's window.
type schedule struct {
	law    *law
	shifts []*shifts
}

// at returns the slot that contains an instant. The next slot may have the same reason.
func (s schedule) at(at time.Time) Slot {
	slot := s.law.at(at)
	for _, x := range s.shifts {
		own := x.at(at)
		if !own.IsOpen() && (slot.IsOpen() || slot.Reason == ZoneUnresolved) {
			slot.Reason = own.Reason
		}
		if own.Until.Before(slot.Until) {
			slot.Until = own.Until
		}
	}
	slot.From = at
	return slot
}

// nextOpen returns the first time, not before at, at which calls are allowed, and whether there is one before end. A
// zero end means 60 days after at.
func (s schedule) nextOpen(at, end time.Time) (time.Time, bool) {
	if latest := at.AddDate(0, 0, 60); end.IsZero() || end.After(latest) {
		end = latest
	}
	for at.Before(end) {
		slot := s.at(at)
		if slot.IsOpen() {
			return at, true
		}
		at = slot.Until
	}
	return time.Time{}, false
}
