package market

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A holiday recurs every year.
type holiday struct {
	name     string
	on       func(year int) time.Time // the day of the holiday, at 00:00 UTC
	friday   bool                     // also observed on Friday if the holiday falls on a Saturday
	monday   bool                     // also observed on Monday if the holiday falls on a Sunday
	citation string
}

// isOn reports whether the holiday is on the date of t.
func (h holiday) isOn(t time.Time) bool {
	date := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	// A holiday observed on a Friday may belong to the next year.
	for _, year := range []int{date.Year(), date.Year() + 1} {
		day := h.on(year)
		switch {
		case day.Equal(date):
			return true
		case h.friday && day.Weekday() == time.Saturday && day.AddDate(0, 0, -1).Equal(date):
			return true
		case h.monday && day.Weekday() == time.Sunday && day.AddDate(0, 0, 1).Equal(date):
			return true
		}
	}
	return false
}

func (p *Package) addHoliday(r row) error {
	on, err := parseDay(r["day"])
	if err != nil {
		return err
	}
	h := holiday{name: r["name"], on: on, citation: r["citation"]}
	for o := range strings.FieldsSeq(r["observed"]) {
		switch o {
		case "fri":
			h.friday = true
		case "mon":
			h.monday = true
		default:
			return fmt.Errorf("observed %q: use fri or mon", o)
		}
	}
	p.holidays[r["state"]] = append(p.holidays[r["state"]], h)
	return nil
}

// parseDay parses the day of a holiday: "07-04", "mon 3 01" (third Monday of January), "mon last 05" or "easter". A
// number of days to add may follow, as in "easter -2".
func parseDay(s string) (func(year int) time.Time, error) {
	f := strings.Fields(s)
	var day func(year int) time.Time
	switch {
	case len(f) == 0:
		return nil, fmt.Errorf("day is empty")
	case f[0] == "easter":
		day, f = easter, f[1:]
	case len(f) >= 3 && len(f[0]) == 3:
		var err error
		if day, err = nthWeekday(f[0], f[1], f[2]); err != nil {
			return nil, fmt.Errorf("day %q: %w", s, err)
		}
		f = f[3:]
	default:
		at, err := time.Parse("01-02", f[0])
		if err != nil {
			return nil, fmt.Errorf("day %q: use MM-DD, a weekday of a month, or easter", s)
		}
		day = func(year int) time.Time { return time.Date(year, at.Month(), at.Day(), 0, 0, 0, 0, time.UTC) }
		f = f[1:]
	}
	if len(f) == 0 {
		return day, nil
	}
	more, err := strconv.Atoi(f[0])
	if err != nil || len(f) > 1 {
		return nil, fmt.Errorf("day %q: %q is not a number of days to add", s, strings.Join(f, " "))
	}
	return func(year int) time.Time { return day(year).AddDate(0, 0, more) }, nil
}

// nthWeekday returns the given weekday of a month: 1st to 4th, or last.
func nthWeekday(weekday, which, month string) (func(year int) time.Time, error) {
	wd := strings.Index("sunmontuewedthufrisat", weekday)
	m, err := strconv.Atoi(month)
	n := 0
	if which != "last" {
		n, _ = strconv.Atoi(which)
	}
	if wd < 0 || wd%3 != 0 || err != nil || m < 1 || m > 12 || n < 0 || n > 4 || n == 0 && which != "last" {
		return nil, fmt.Errorf("use a weekday (mon), its position (1 to 4, last) and the month (01 to 12)")
	}
	return func(year int) time.Time {
		if n > 0 {
			first := time.Date(year, time.Month(m), 1, 0, 0, 0, 0, time.UTC)
			ahead := (wd/3 - int(first.Weekday()) + 7) % 7
			return first.AddDate(0, 0, ahead+7*(n-1))
		}
		last := time.Date(year, time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC)
		return last.AddDate(0, 0, -((int(last.Weekday()) - wd/3 + 7) % 7))
	}, nil
}

// easter returns Easter Sunday of the Gregorian calendar, by the anonymous algorithm
// (J. Meeus, "Astronomical Algorithms", 1991).
func easter(year int) time.Time {
	a, b, c := year%19, year/100, year%100
	d, e := b/4, b%4
	g := (8*b + 13) / 25
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 22*l) / 451
	month := (h + l - 7*m + 114) / 31
	day := (h+l-7*m+114)%31 + 1
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}
