package market

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// A window has the hours of one rule.
type window struct {
	class       Classification // empty means all classifications
	from, until string         // YYYY-MM-DD, both inclusive; empty means no bound
	week        Week
	holidays    Hours
	anyHoliday  bool // holidays count as ordinary days
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
			return fmt.Errorf("%q is not a date: use YYYY-MM-DD", date)
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

// Reasons that forbid a call now.
const (
	OutsideWindow = "outside_legal_window"
	OnHoliday     = "legal_holiday"
	NoZone        = "timezone_unresolved"
)

// A Verdict is the result of Legal.
type Verdict struct {
	Legal   bool
	Reason  string // OutsideWindow, OnHoliday or NoZone; empty if the call is legal
	Rule    string // the statute that forbids the call
	Version string // version of the rules
}

// Legal reports whether a call to a location is legal at an instant. If there are several possible zones or states,
// the call must be legal in each.
func (p *Package) Legal(at time.Time, place Location, class Classification) Verdict {
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
			reason := p.forbiddenReason(w, state, local)
			if reason == OutsideWindow && v.Reason != OutsideWindow || reason != "" && v.Legal {
				v = Verdict{Reason: reason, Rule: w.citation, Version: p.Version}
			}
		}
	}
	return v
}

// forbiddenReason returns why a state's rule forbids a call at a local time, empty if it does
// not.
func (p *Package) forbiddenReason(w window, state string, local time.Time) string {
	switch at := ClockOf(local); {
	case !w.week[Weekday(local)].Contains(at):
		return OutsideWindow
	case !w.anyHoliday && !w.holidays.Contains(at) && p.isHoliday(state, local):
		return OnHoliday
	default:
		return ""
	}
}

// isHoliday reports whether the date of t is a holiday in a state.
func (p *Package) isHoliday(state string, t time.Time) bool {
	return slices.ContainsFunc(p.holidays[state], func(h holiday) bool { return h.isOn(t) })
}

// rules returns the windows that apply to a call at a local time, with their states.
func (p *Package) rules(place Location, class Classification, local time.Time) iter.Seq2[window, string] {
	date := func() string { return local.Format(time.DateOnly) } // computed only if needed: few rules need it
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

// location returns a zone by name, nil if unknown.
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

// searchDays bounds the search for a legal time.
const searchDays = 60

// NextOpen returns the first time, not before at, at which a call is legal, and whether
// there is one in the next 60 days.
func (p *Package) NextOpen(at time.Time, place Location, class Classification) (time.Time, bool) {
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
		for d := range searchDays {
			day := time.Date(local.Year(), local.Month(), local.Day()+d, 12, 0, 0, 0, zone)
			for w := range p.rules(place, class, day) {
				for _, h := range []Hours{w.week[Weekday(day)], w.holidays} {
					start := time.Date(day.Year(), day.Month(), day.Day(), int(h.From)/60, int(h.From)%60, 0, 0, zone)
					if !h.IsEmpty() && start.After(at) {
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

// NeverLegal reports whether calls to a location are illegal at every hour of every weekday.
func (p *Package) NeverLegal(at time.Time, place Location, class Classification) bool {
	return p.legalWeek(at, place, class).IsEmpty()
}

// Floor returns the widest accepted working hours. They are the legal week of the location that all contacts share,
// or of the country if the locations differ. If the market also applies the organization's window, they lie within
// it.
func (p *Package) Floor(at time.Time, places []Location, class Classification, organization Week) Week {
	var shared Location
	for i, place := range places {
		if i > 0 && !slices.Equal(place.States, shared.States) {
			shared = Location{}
			break
		}
		shared = place
	}
	w := p.legalWeek(at, shared, class)
	if p.OrganizationWindow {
		w = w.And(organization)
	}
	return w
}

// legalWeek returns the legal week of a location without holidays.
func (p *Package) legalWeek(at time.Time, place Location, class Classification) Week {
	week := Always()
	for w := range p.rules(place, class, at) {
		week = week.And(w.week)
	}
	return week
}
