package oracle

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A law has the tables of one market.
type law struct {
	country                            string
	areas, windows, holidays, caps     []map[string]string
	places                             map[string]map[string]string // rows of the areas by area code
	free                               map[string]map[string]bool   // holidays by state
	countryZones                       []string
	zones                              map[string]*time.Location
	windowBounds, calendarDay, numbers bool
}

// readLaw reads the tables. It does not read package.yaml: the facts of the two markets
// are repeated here, independently.
func readLaw(code string, files map[string]string) (*law, error) {
	l := &law{country: strings.ToUpper(code), zones: map[string]*time.Location{}, places: map[string]map[string]string{}}
	l.numbers = code == "us"
	if code == "kz" {
		l.countryZones, l.windowBounds, l.calendarDay = []string{"Asia/Almaty"}, true, true
	}
	for name, to := range map[string]*[]map[string]string{
		"areacodes.csv": &l.areas, "windows.csv": &l.windows, "holidays.csv": &l.holidays, "caps.csv": &l.caps,
	} {
		if name == "areacodes.csv" && !l.numbers {
			continue
		}
		var err error
		if *to, err = table(files, name); err != nil {
			return nil, err
		}
	}
	for _, r := range l.areas {
		l.places[r["areacode"]] = r
	}
	return l, l.calendar()
}

func table(files map[string]string, name string) ([]map[string]string, error) {
	text, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("%s is missing", name)
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var all []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range line {
			row[lines[0][i]] = strings.TrimSpace(cell)
		}
		all = append(all, row)
	}
	return all, nil
}

// Years of the calendar.
const (
	firstYear = 2025
	lastYear  = 2031
)

// easterOf returns Easter Sunday from a table.
func easterOf(year int) string {
	return map[int]string{
		2025: "2025-04-20", 2026: "2026-04-05", 2027: "2027-03-28", 2028: "2028-04-16", 2029: "2029-04-01", 2030: "2030-04-21",
		2031: "2031-04-13",
	}[year]
}

// calendar lists the holidays by state.
func (l *law) calendar() error {
	l.free = map[string]map[string]bool{}
	for _, h := range l.holidays {
		if l.free[h["state"]] == nil {
			l.free[h["state"]] = map[string]bool{}
		}
		for year := firstYear; year <= lastYear; year++ {
			day, err := dayOf(h["day"], year)
			if err != nil {
				return err
			}
			l.free[h["state"]][day.Format(time.DateOnly)] = true
			if strings.Contains(h["observed"], "fri") && day.Weekday() == time.Saturday {
				l.free[h["state"]][day.AddDate(0, 0, -1).Format(time.DateOnly)] = true
			}
			if strings.Contains(h["observed"], "mon") && day.Weekday() == time.Sunday {
				l.free[h["state"]][day.AddDate(0, 0, 1).Format(time.DateOnly)] = true
			}
		}
	}
	return nil
}

// dayOf finds the day of a rule by iterating over the year.
func dayOf(rule string, year int) (time.Time, error) {
	words := strings.Fields(rule)
	var found []time.Time
	add := 0
	for day := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() == year; day = day.AddDate(0, 0, 1) {
		switch {
		case words[0] == "easter" && day.Format(time.DateOnly) == easterOf(year),
			words[0] == day.Format("01-02"),
			len(words) > 2 && words[2] == day.Format("01") && words[0] == strings.ToLower(day.Format("Mon")):
			found = append(found, day)
		}
	}
	which := "1"
	rest := words[1:]
	if len(words) > 2 && len(words[0]) == 3 {
		which, rest = words[1], words[3:]
	}
	if len(rest) > 0 {
		var err error
		if add, err = strconv.Atoi(rest[0]); err != nil {
			return time.Time{}, fmt.Errorf("day %q: %w", rule, err)
		}
	}
	if which == "last" {
		which = strconv.Itoa(len(found))
	}
	n, err := strconv.Atoi(which)
	if err != nil || n < 1 || n > len(found) {
		return time.Time{}, fmt.Errorf("day %q does not occur in %d", rule, year)
	}
	return found[n-1].AddDate(0, 0, add), nil
}

// where returns the possible states and zones of a row's number.
func (l *law) where(r row) (states, zones []string) {
	states, zones = []string{l.country}, append(zones, l.countryZones...)
	if l.numbers {
		area := l.places[r.phone[2:5]]
		states, zones = append(states, area["state"]), append(zones, strings.Split(area["zones"], "|")...)
	}
	if r.state != "" {
		states = append(states, r.state)
	}
	if r.timezone != "" {
		zones = append(zones, r.timezone)
	}
	return states, zones
}

func (l *law) zone(name string) *time.Location {
	if l.zones[name] == nil {
		z, err := time.LoadLocation(name)
		if err != nil {
			return time.UTC
		}
		l.zones[name] = z
	}
	return l.zones[name]
}

// within reports whether the local time of t is in HH:MM-HH:MM; false for none.
func within(t time.Time, hours string) bool {
	now := t.Format("15:04")
	from, to, ok := strings.Cut(hours, "-")
	return ok && now >= from && now < to
}

// forbids returns the statute that forbids a call to a row at t, empty for none.
func (l *law) forbids(t time.Time, r row, class string) string {
	states, zones := l.where(r)
	for _, name := range zones {
		local := t.In(l.zone(name))
		for _, w := range l.windows {
			if slices.Contains(states, w["state"]) && (w["classification"] == "all" || w["classification"] == class) && l.violates(local, w) {
				return fmt.Sprintf("%s %s at %s %s", w["state"], w["citation"], local.Format("Mon 2006-01-02 15:04:05"), name)
			}
		}
	}
	return ""
}

// violates reports whether a call at a local time violates a row of windows.csv.
func (l *law) violates(local time.Time, w map[string]string) bool {
	date := local.Format(time.DateOnly)
	if w["from"] != "" && date < w["from"] || w["until"] != "" && date > w["until"] {
		return false
	}
	column := map[time.Weekday]string{time.Saturday: "sat", time.Sunday: "sun"}[local.Weekday()]
	if column == "" {
		column = "mon_fri"
	}
	return !within(local, w[column]) || w["holidays"] != "any" && l.free[w["state"]][date] && !within(local, w["holidays"])
}
