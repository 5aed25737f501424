package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// A Group has the contacts with the same calling hours: the same possible locations,
// and the same zone named in their rows.
type Group struct {
	Location market.Location
	Named    string // zone that the rows name
}

// Key identifies the group.
func (g Group) Key() string { return g.locationKey() + ";" + g.Named }

func (g Group) locationKey() string {
	return strings.Join(g.Location.States, ",") + ";" + strings.Join(g.Location.Zones, ",")
}

// ParseGroup parses a key.
func ParseGroup(key string) (Group, error) {
	parts := strings.Split(key, ";")
	if len(parts) != 3 {
		return Group{}, fmt.Errorf("%q is not a group key: use STATES;ZONES;ZONE", key)
	}
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ",")
	}
	return Group{Location: market.Location{States: list(parts[0]), Zones: list(parts[1])}, Named: parts[2]}, nil
}

// Widen adds a possible location: calls must then be allowed there, too.
func (g Group) Widen(p market.Location) Group {
	g.Location.States, g.Location.Zones = union(g.Location.States, p.States), union(g.Location.Zones, p.Zones)
	return g
}

// union returns the union of two lists, sorted and not nil.
func union(a, b []string) []string {
	all := append(append([]string{}, a...), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// A Campaign has the data for planning.
type Campaign struct {
	ID          string
	Running     bool
	Ends        time.Time // zero means never
	Class       market.Classification
	Market      *market.Package
	Override    Override
	Hours       [7][]market.Hours // working hours in Zone or, with ContactZone, in the zone that the contact's row names
	Zone        *time.Location
	ContactZone bool
	// Window is the organization's calling window in WindowZone. It applies if the market says so.
	Window     market.Week
	WindowZone *time.Location
}

// A Calendar knows when each group of a campaign may be called, and caches it. It is
// for one goroutine and one version of its campaign.
type Calendar struct {
	campaign    Campaign
	laws        *LawCache
	window      *shifts            // nil if the window does not apply
	hoursByZone map[string]*shifts // working hours by the zone that rows name
	groups      map[string]*groupCalendar

	keys, open   []string // arguments and result of the last call of Open
	keyCalendars []*groupCalendar
	openUntil    time.Time
	openSince    time.Time
}

// A groupCalendar is the calendar of a group.
type groupCalendar struct {
	schedule
	caps  []market.Cap
	zones []*time.Location
	slot  Slot
}

// NewCalendar returns the calendar of a campaign.
func NewCalendar(c Campaign, a *LawCache) *Calendar {
	k := &Calendar{campaign: c, laws: a, hoursByZone: map[string]*shifts{}, groups: map[string]*groupCalendar{}}
	if c.Market.OrganizationWindow {
		k.window = &shifts{zone: c.WindowZone}
		for d, h := range c.Window {
			k.window.week[d] = []market.Hours{h}
		}
	}
	return k
}

// hours returns the working hours for rows that name a zone; named is empty for rows that name none.
func (k *Calendar) hours(named string) *shifts {
	if !k.campaign.ContactZone {
		named = ""
	}
	if k.hoursByZone[named] == nil {
		s := &shifts{zone: k.campaign.Zone, week: k.campaign.Hours}
		if zone := k.laws.zone(named); named != "" && zone != nil {
			s.zone = zone
		}
		k.hoursByZone[named] = s
	}
	return k.hoursByZone[named]
}

// group returns the calendar of a group. A group with an unreadable key has no zone and is
// not called.
func (k *Calendar) group(key string) *groupCalendar {
	if d := k.groups[key]; d != nil {
		return d
	}
	g, _ := ParseGroup(key) // the zero group has no zone, so its contacts are held
	c := k.campaign
	d := &groupCalendar{caps: Caps(c.Market, g.Location, c.Class, c.Override)}
	d.law, d.shifts = k.laws.law(c.Market, g.locationKey(), g.Location, c.Class), []*shifts{k.hours(g.Named)}
	if k.window != nil {
		d.shifts = append(d.shifts, k.window)
	}
	for _, name := range g.Location.Zones {
		if zone := k.laws.zone(name); zone != nil {
			d.zones = append(d.zones, zone)
		}
	}
	k.groups[key] = d
	return d
}

// Slot returns the group's slot that contains the instant.
func (k *Calendar) Slot(at time.Time, key string) Slot { return k.group(key).slotAt(at) }

// NextOpen returns the first time, not before at, at which a group may be called, and whether there is one before
// end. A zero end means 60 days after at.
func (k *Calendar) NextOpen(at time.Time, key string, end time.Time) (time.Time, bool) {
	if last := k.campaign.Ends; !last.IsZero() && (end.IsZero() || last.Before(end)) {
		end = last
	}
	return k.group(key).nextOpen(at, end)
}

func (d *groupCalendar) slotAt(at time.Time) Slot {
	if !d.slot.contains(at) {
		d.slot = d.at(at)
	}
	return d.slot
}

// Open returns the groups that may be called now, and when that may change. It reuses
// the slice of the previous call.
func (k *Calendar) Open(at time.Time, keys []string) (open []string, until time.Time) {
	same := slices.Equal(keys, k.keys)
	if same && !at.Before(k.openSince) && at.Before(k.openUntil) {
		return k.open, k.openUntil
	}
	if !same {
		k.keys, k.keyCalendars = append(k.keys[:0], keys...), k.keyCalendars[:0]
		for _, key := range keys {
			k.keyCalendars = append(k.keyCalendars, k.group(key))
		}
	}
	k.open, k.openSince, k.openUntil = k.open[:0], at, time.Time{}
	for i, d := range k.keyCalendars {
		slot := d.slotAt(at)
		if slot.IsOpen() {
			k.open = append(k.open, keys[i])
		}
		if k.openUntil.IsZero() || slot.Until.Before(k.openUntil) {
			k.openUntil = slot.Until
		}
	}
	return k.open, k.openUntil
}

// DialHistory returns how far back the dials to a group's numbers must be known.
func (k *Calendar) DialHistory(key string) time.Duration { return DialHistory(k.group(key).caps) }

// A Contact is a waiting contact with its history.
type Contact struct {
	ID                           string
	Group                        string // key of the contact's group
	RetryAt, NotBefore, NotAfter time.Time
	History                      History
	// Engaged reports that the contact's number is in another call of the organization now.
	Engaged                bool
	ScreenStale, RouteDown bool
}

// Gate decides about a contact of the campaign.
func (k *Calendar) Gate(at time.Time, c Contact) Verdict {
	d := k.group(c.Group)
	f := Facts{
		Running: k.campaign.Running, Ends: k.campaign.Ends, Slot: d.slotAt(at), Hold: FindHold(at, d.caps, c.History, d.zones),
		RetryAt: c.RetryAt, NotBefore: c.NotBefore, NotAfter: c.NotAfter, Engaged: c.Engaged, ScreenStale: c.ScreenStale, RouteDown: c.RouteDown,
	}
	v := Gate(at, f)
	// The end of the hold may lie outside of the calling hours.
	if v.Decision == Wait && v.Reason == FrequencyCap && !f.Ends.IsZero() {
		if _, ok := d.nextOpen(v.Until, f.Ends); !ok {
			return Verdict{Decision: Capped, Cap: v.Cap, Rule: v.Rule}
		}
	}
	return v
}
