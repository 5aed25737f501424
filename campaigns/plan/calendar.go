package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// A Group is contacts that the same hours hold for: they may be in the same
// place, and their rows name the same zone, or none.
type Group struct {
	Place market.Place
	Named string // the zone that the rows name
}

// Key is the group as a text, equal for equal groups.
func (g Group) Key() string { return g.place() + ";" + g.Named }

func (g Group) place() string {
	return strings.Join(g.Place.States, ",") + ";" + strings.Join(g.Place.Zones, ",")
}

// ParseGroup reads a key.
func ParseGroup(key string) (Group, error) {
	parts := strings.Split(key, ";")
	if len(parts) != 3 {
		return Group{}, fmt.Errorf("%q is no group of contacts: it is STATES;ZONES;ZONE", key)
	}
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ",")
	}
	return Group{Place: market.Place{States: list(parts[0]), Zones: list(parts[1])}, Named: parts[2]}, nil
}

// Wider is the group of those who may be in another place too: what is done must be
// allowed in both.
func (g Group) Wider(p market.Place) Group {
	g.Place.States, g.Place.Zones = either(g.Place.States, p.States), either(g.Place.Zones, p.Zones)
	return g
}

// either is all that is in one of two lists, sorted; never nil.
func either(a, b []string) []string {
	all := append(append([]string{}, a...), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// A Campaign is what planning needs of one.
type Campaign struct {
	ID          string
	Running     bool
	Ends        time.Time // zero: never
	Class       market.Classification
	Market      *market.Package
	Override    Override
	Hours       [7][]market.Hours // working hours, in Zone or, with ContactZone, in the zone that a contact's row names
	Zone        *time.Location
	ContactZone bool
	// Window is the organization's, in WindowZone, where it bounds.
	Window     market.Week
	WindowZone *time.Location
}

// A Calendar knows when each group of a campaign's contacts may be called. It
// remembers what it worked out while that holds. It is for one goroutine, and
// for one state of its campaign.
type Calendar struct {
	campaign Campaign
	almanac  *Almanac
	window   *shifts            // nil where it does not bound
	own      map[string]*shifts // by the zone that rows name
	groups   map[string]*days

	asked, open []string // of Open, the last time
	askedDays   []*days
	until       time.Time
	since       time.Time
}

// days are a group's.
type days struct {
	schedule
	caps  []market.Cap
	zones []*time.Location
	slot  Slot
}

// NewCalendar makes the calendar of a campaign.
func NewCalendar(c Campaign, a *Almanac) *Calendar {
	k := &Calendar{campaign: c, almanac: a, own: map[string]*shifts{}, groups: map[string]*days{}}
	if c.Market.OrganizationWindow {
		k.window = &shifts{zone: c.WindowZone}
		for d, h := range c.Window {
			k.window.week[d] = []market.Hours{h}
		}
	}
	return k
}

// hours are the campaign's working hours for rows that name a zone, or none.
func (k *Calendar) hours(named string) *shifts {
	if !k.campaign.ContactZone {
		named = ""
	}
	if k.own[named] == nil {
		s := &shifts{zone: k.campaign.Zone, week: k.campaign.Hours}
		if zone := k.almanac.zone(named); named != "" && zone != nil {
			s.zone = zone
		}
		k.own[named] = s
	}
	return k.own[named]
}

// of finds a group's days. A key that cannot be read has no zone: nobody of it
// is called.
func (k *Calendar) of(key string) *days {
	if d := k.groups[key]; d != nil {
		return d
	}
	g, _ := ParseGroup(key) // the zero group is held for its zone
	c := k.campaign
	d := &days{caps: Caps(c.Market, g.Place, c.Class, c.Override)}
	d.law, d.shifts = k.almanac.law(c.Market, g.place(), g.Place, c.Class), []*shifts{k.hours(g.Named)}
	if k.window != nil {
		d.shifts = append(d.shifts, k.window)
	}
	for _, name := range g.Place.Zones {
		if zone := k.almanac.zone(name); zone != nil {
			d.zones = append(d.zones, zone)
		}
	}
	k.groups[key] = d
	return d
}

// Slot is the stretch of time around an instant in which one answer holds for
// a group.
func (k *Calendar) Slot(at time.Time, key string) Slot { return k.of(key).slotAt(at) }

func (d *days) slotAt(at time.Time) Slot {
	if !d.slot.has(at) {
		d.slot = d.at(at)
	}
	return d.slot
}

// Open returns which groups may be called now, and when that may change. What
// it returned before is not to be used any more.
func (k *Calendar) Open(at time.Time, keys []string) (open []string, until time.Time) {
	same := slices.Equal(keys, k.asked)
	if same && !at.Before(k.since) && at.Before(k.until) {
		return k.open, k.until
	}
	if !same {
		k.asked, k.askedDays = append(k.asked[:0], keys...), k.askedDays[:0]
		for _, key := range keys {
			k.askedDays = append(k.askedDays, k.of(key))
		}
	}
	k.open, k.since, k.until = k.open[:0], at, time.Time{}
	for i, d := range k.askedDays {
		slot := d.slotAt(at)
		if slot.Open() {
			k.open = append(k.open, keys[i])
		}
		if k.until.IsZero() || slot.Until.Before(k.until) {
			k.until = slot.Until
		}
	}
	return k.open, k.until
}

// Remembered is for how long the dials of a group's numbers must be known.
func (k *Calendar) Remembered(key string) time.Duration { return Remembered(k.of(key).caps) }

// A Contact is one that waits, and what the claim found out of it.
type Contact struct {
	ID                           string
	Group                        string // its key
	RetryAt, NotBefore, NotAfter time.Time
	History                      History
	// Engaged tells that its number is on a call of the organization's now.
	Engaged                bool
	ScreenStale, RouteDown bool
}

// Gate decides about a contact of the campaign.
func (k *Calendar) Gate(at time.Time, c Contact) Verdict {
	d := k.of(c.Group)
	f := Facts{
		Running: k.campaign.Running, Ends: k.campaign.Ends, Slot: d.slotAt(at), Hold: Held(at, d.caps, c.History, d.zones),
		RetryAt: c.RetryAt, NotBefore: c.NotBefore, NotAfter: c.NotAfter, Engaged: c.Engaged, ScreenStale: c.ScreenStale, RouteDown: c.RouteDown,
	}
	v := Gate(at, f)
	// Called again when its time has come, not when its hold is over: a hold
	// that ends at night is followed by the night.
	if v.Fate == Wait && v.Reason == FrequencyCap && !f.Ends.IsZero() {
		if _, ok := d.opens(v.Until, f.Ends); !ok {
			return Verdict{Fate: Capped, Cap: v.Cap, Rule: v.Rule}
		}
	}
	return v
}
