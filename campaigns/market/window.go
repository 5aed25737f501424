package market

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// A window is the hours of one rule.
type window struct {
	class       Classification // empty is any
	from, until string         // YYYY-MM-DD, both included; empty is without end
	week        Week
	holidays    Hours
	anyHoliday  bool // holidays are days like others
	citation    string
}

func (p *Package) addWindow(r row) error {
	w := window{from: r["from"], until: r["until"], citation: r["citation"]}
	if c := r["classification"]; c != "all" {
		w.class = Classification(c)
		if !slices.Contains(Classifications(), w.class) {
			return fmt.Errorf("classification %q: use all, or one of %v", c, Classifications())
		}
	}
	for _, date := range []string{w.from, w.until} {
		if _, err := time.Parse(time.DateOnly, date); date != "" && err != nil {
			return fmt.Errorf("%q is no date: write YYYY-MM-DD", date)
		}
	}
	for i, name := range []string{"mon_fri", "mon_fri", "mon_fri", "mon_fri", "mon_fri", "sat", "sun"} {
		h, err := parseHours(r[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.week[i] = h
	}
	if w.anyHoliday = r["holidays"] == "any"; !w.anyHoliday {
		var err error
		if w.holidays, err = parseHours(r["holidays"]); err != nil {
			return fmt.Errorf("holidays: %w", err)
		}
	}
	p.windows[r["state"]] = append(p.windows[r["state"]], w)
	return nil
}

// Reasons why a call may not be made now.
const (
	OutsideWindow = "outside_legal_window"
	OnHoliday     = "legal_holiday"
	NoZone        = "timezone_unresolved"
)

// A Verdict is whether a call may be made, and by which rule it may not.
type Verdict struct {
	Legal   bool
	Reason  string // OutsideWindow, OnHoliday or NoZone; empty where it may
	Rule    string // the statute that forbids it
	Version string // of the rules
}

// Legal tells whether a call to a place may be made at an instant. Where a
// number may be in several zones or states, it must be legal in each.
func (p *Package) Legal(at time.Time, place Place, class Classification) Verdict {
	v := Verdict{Legal: true, Version: p.Version}
	if len(place.Zones) == 0 {
		return Verdict{Reason: NoZone, Version: p.Version}
	}
	for _, name := range place.Zones {
		zone := p.location(name)
		if zone == nil {
			return Verdict{Reason: NoZone, Version: p.Version}
		}
		local := at.In(zone)
		for w, state := range p.rules(place, class, local) {
			reason := p.forbids(w, state, local)
			if reason == OutsideWindow && v.Reason != OutsideWindow || reason != "" && v.Legal {
				v = Verdict{Reason: reason, Rule: w.citation, Version: p.Version}
			}
		}
	}
	return v
}

// forbids tells why a rule of a state forbids a call at a local time, if it does.
func (p *Package) forbids(w window, state string, local time.Time) string {
	switch at := ClockOf(local); {
	case !w.week[Weekday(local)].Has(at):
		return OutsideWindow
	case !w.anyHoliday && !w.holidays.Has(at) && p.holiday(state, local):
		return OnHoliday
	default:
		return ""
	}
}

// holiday tells whether the date of t is one in a state.
func (p *Package) holiday(state string, t time.Time) bool {
	return slices.ContainsFunc(p.holidays[state], func(h holiday) bool { return h.falls(t) })
}

// rules are the windows that hold for a call at a local time, and whose they are.
func (p *Package) rules(place Place, class Classification, local time.Time) iter.Seq2[window, string] {
	date := func() string { return local.Format(time.DateOnly) } // few rules need it
	return func(yield func(window, string) bool) {
		for i := -1; i < len(place.States); i++ {
			state := p.Region
			if i >= 0 {
				state = place.States[i]
			}
			for _, w := range p.windows[state] {
				if w.class != "" && w.class != class || w.from != "" && w.from > date() || w.until != "" && w.until < date() {
					continue
				}
				if !yield(w, state) {
					return
				}
			}
		}
	}
}

// location is a zone by name, nil where there is none.
func (p *Package) location(name string) *time.Location {
	if l := p.locations[name]; l != nil {
		return l
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return l
}

// searched is how far ahead a time is looked for at which calls may be made.
const searched = 60 // days

// Opens is the first instant from at on at which a call may be made, and
// whether there is one in the next 60 days. Allowed, where it is not nil, must
// hold too: working hours, say.
func (p *Package) Opens(at time.Time, place Place, class Classification) (time.Time, bool) {
	if p.Legal(at, place, class).Legal {
		return at, true
	}
	var starts []time.Time
	for _, name := range place.Zones {
		zone := p.location(name)
		if zone == nil {
			return time.Time{}, false
		}
		local := at.In(zone)
		for d := range searched {
			day := time.Date(local.Year(), local.Month(), local.Day()+d, 12, 0, 0, 0, zone)
			for w := range p.rules(place, class, day) {
				for _, h := range []Hours{w.week[Weekday(day)], w.holidays} {
					start := time.Date(day.Year(), day.Month(), day.Day(), int(h.From)/60, int(h.From)%60, 0, 0, zone)
					if !h.None() && start.After(at) {
						starts = append(starts, start)
					}
				}
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	for _, t := range starts {
		if p.Legal(t, place, class).Legal {
			return t, true
		}
	}
	return time.Time{}, false
}

// Never tells that no hour of any weekday is legal for such calls to a place.
func (p *Package) Never(at time.Time, place Place, class Classification) bool {
	return p.week(at, place, class).None()
}

// Floor is what working hours may not be wider than: the legal week of the
// jurisdiction that all contacts share, or of the country where they share
// none, within the organization's own window where that bounds calls here.
func (p *Package) Floor(at time.Time, places []Place, class Classification, organization Week) Week {
	var shared Place
	for i, place := range places {
		if i > 0 && !slices.Equal(place.States, shared.States) {
			shared = Place{}
			break
		}
		shared = place
	}
	w := p.week(at, shared, class)
	if p.OrganizationWindow {
		w = w.And(organization)
	}
	return w
}

// week is the legal week of a place on days that are no holidays.
func (p *Package) week(at time.Time, place Place, class Classification) Week {
	week := Always()
	for w := range p.rules(place, class, at) {
		week = week.And(w.week)
	}
	return week
}
