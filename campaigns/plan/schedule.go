// Package plan decides when a contact may be called, and whom a campaign calls
// next. It is pure: the instant, the rules and what happened come in, a
// decision with its reason goes out. The dialler in production and the
// simulation decide by it alike.
package plan

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// Reasons why a waiting contact is not called now. The order of Reasons is the
// order in which they count: of several, the first is told.
const (
	NotRunning       = "campaign_not_running"
	NoMarket         = "market_package_not_installed" // or not that of the campaign
	FrequencyCap     = "frequency_cap"
	OutsideLaw       = market.OutsideWindow
	LegalHoliday     = market.OnHoliday
	OutsideHours     = "outside_working_hours"
	ZoneUnresolved   = market.NoZone
	RetryWait        = "retry_wait"
	NotBefore        = "not_before"
	ScreenStale      = "dnc_screen_stale"
	RouteUnavailable = "route_unavailable"
)

// Reasons lists all, in the order in which they count.
func Reasons() []string {
	return []string{
		NotRunning, NoMarket, FrequencyCap, OutsideLaw, LegalHoliday, OutsideHours, ZoneUnresolved, RetryWait, NotBefore, ScreenStale, RouteUnavailable,
	}
}

// A Slot is a stretch of time over which one answer holds.
type Slot struct {
	From, Until time.Time // From included, Until not
	Reason      string    // empty: calls may be made
	Rule        string    // the statute that forbids them, where one does
}

// Open tells whether calls may be made.
func (s Slot) Open() bool { return s.Reason == "" }

// has tells whether an instant is in the slot.
func (s Slot) has(at time.Time) bool { return !at.Before(s.From) && at.Before(s.Until) }

// ahead is how far a slot is looked for. What holds longer is asked again then.
const ahead = 36 * time.Hour

// stretch is the slot around an instant: until the first of some edges at which
// the answer is another.
func stretch(at time.Time, edges []time.Time, ask func(time.Time) (reason, rule string)) Slot {
	reason, rule := ask(at)
	slot := Slot{From: at, Until: at.Add(ahead), Reason: reason, Rule: rule}
	slices.SortFunc(edges, time.Time.Compare)
	for i, edge := range edges {
		if i > 0 && edge.Equal(edges[i-1]) {
			continue
		}
		if r, _ := ask(edge); r != reason {
			slot.Until = edge
			break
		}
	}
	return slot
}

// A law is what the law says of calls to one place, and remembers of the last
// instant that it was asked about.
type law struct {
	market *market.Package
	place  market.Place
	class  market.Classification
	slot   Slot
}

func (l *law) at(at time.Time) Slot {
	if !l.slot.has(at) {
		l.slot = stretch(at, l.market.Edges(at, ahead, l.place, l.class), func(t time.Time) (string, string) {
			v := l.market.Legal(t, l.place, l.class)
			return v.Reason, v.Rule
		})
	}
	return l.slot
}

// An Almanac knows what the law says, for all campaigns. It remembers what it
// worked out, and is for one goroutine.
type Almanac struct {
	laws  map[lawOf]*law
	zones map[string]*time.Location
}

type lawOf struct {
	market *market.Package
	place  string
	class  market.Classification
}

// zone is that of a name, nil where there is none.
func (a *Almanac) zone(name string) *time.Location {
	zone, ok := a.zones[name]
	if !ok {
		zone, _ = time.LoadLocation(name) // nil beside an error
		if a.zones == nil {
			a.zones = map[string]*time.Location{}
		}
		a.zones[name] = zone
	}
	return zone
}

// law is that of a place, whose key is given.
func (a *Almanac) law(p *market.Package, key string, place market.Place, class market.Classification) *law {
	if a.laws == nil {
		a.laws = map[lawOf]*law{}
	}
	of := lawOf{p, key, class}
	if a.laws[of] == nil {
		a.laws[of] = &law{market: p, place: place, class: class}
	}
	return a.laws[of]
}

// shifts are hours of each weekday, Monday first, in a zone, and what they said
// last.
type shifts struct {
	zone *time.Location
	week [7][]market.Hours
	slot Slot
}

func (s *shifts) at(at time.Time) Slot {
	if s.slot.has(at) {
		return s.slot
	}
	var clocks []market.Clock
	for _, day := range s.week {
		for _, h := range day {
			clocks = append(clocks, h.From, h.To)
		}
	}
	s.slot = stretch(at, market.LocalEdges(at, ahead, s.zone, clocks), func(t time.Time) (string, string) {
		local := t.In(s.zone)
		if slices.ContainsFunc(s.week[market.Weekday(local)], func(h market.Hours) bool { return h.Has(market.ClockOf(local)) }) {
			return "", ""
		}
		return OutsideHours, ""
	})
	return s.slot
}

// A schedule is when contacts of one place may be called for one campaign: by
// the law there, and by the shifts of the campaign and of its organization.
type schedule struct {
	law    *law
	shifts []*shifts
}

// at is the slot around an instant: what it says is true until it ends. The
// next one may say the same again.
func (s schedule) at(at time.Time) Slot {
	slot := s.law.at(at)
	for _, x := range s.shifts {
		own := x.at(at)
		if !own.Open() && (slot.Open() || slot.Reason == ZoneUnresolved) {
			slot.Reason = own.Reason
		}
		if own.Until.Before(slot.Until) {
			slot.Until = own.Until
		}
	}
	slot.From = at
	return slot
}

// opens is the first instant from at on at which calls may be made, and
// whether there is one before end; the zero end is 60 days later.
func (s schedule) opens(at, end time.Time) (time.Time, bool) {
	if latest := at.AddDate(0, 0, 60); end.IsZero() || end.After(latest) {
		end = latest
	}
	for at.Before(end) {
		slot := s.at(at)
		if slot.Open() {
			return at, true
		}
		at = slot.Until
	}
	return time.Time{}, false
}
