package market

import (
	"fmt"
	"time"
)

// A Clock is a time of day in minutes after midnight, 0 to 1440.
type Clock int

// ParseClock reads HH:MM, 00:00 to 24:00.
func ParseClock(s string) (Clock, error) {
	var h, m int
	if len(s) != 5 || s[2] != ':' || !digits(s[:2]+s[3:]) {
		return 0, fmt.Errorf("%q is no time of day: write HH:MM, 00:00 to 24:00", s)
	}
	h, m = int(s[0]-'0')*10+int(s[1]-'0'), int(s[3]-'0')*10+int(s[4]-'0')
	if m > 59 || h > 24 || h == 24 && m > 0 {
		return 0, fmt.Errorf("%q is no time of day: write HH:MM, 00:00 to 24:00", s)
	}
	return Clock(h*60 + m), nil
}

func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", c/60, c%60) }

func digits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// Hours are a stretch of a day, From included, To not. None where From is not
// before To.
type Hours struct{ From, To Clock }

// None tells that there is no time in h.
func (h Hours) None() bool { return h.From >= h.To }

// Has tells whether c is in h.
func (h Hours) Has(c Clock) bool { return c >= h.From && c < h.To }

// Covers tells whether all of x is in h.
func (h Hours) Covers(x Hours) bool { return x.None() || x.From >= h.From && x.To <= h.To }

// And is what is in both.
func (h Hours) And(x Hours) Hours { return Hours{max(h.From, x.From), min(h.To, x.To)} }

// parseHours reads HH:MM-HH:MM, or none.
func parseHours(s string) (Hours, error) {
	if s == "none" {
		return Hours{}, nil
	}
	if len(s) != 11 || s[5] != '-' {
		return Hours{}, fmt.Errorf("%q are no hours: write HH:MM-HH:MM, or none", s)
	}
	from, err := ParseClock(s[:5])
	if err != nil {
		return Hours{}, err
	}
	to, err := ParseClock(s[6:])
	if err != nil {
		return Hours{}, err
	}
	if from >= to {
		return Hours{}, fmt.Errorf("%q ends before it begins", s)
	}
	return Hours{from, to}, nil
}

// A Week has the hours of each day, Monday first.
type Week [7]Hours

// Always is a week without an end.
func Always() Week {
	var w Week
	for i := range w {
		w[i] = Hours{0, 24 * 60}
	}
	return w
}

// And is what is in both.
func (w Week) And(x Week) Week {
	for i := range w {
		w[i] = w[i].And(x[i])
	}
	return w
}

// None tells that no day has an hour.
func (w Week) None() bool {
	for _, h := range w {
		if !h.None() {
			return false
		}
	}
	return true
}

// Weekday is the place of a day in a Week.
func Weekday(t time.Time) int { return (int(t.Weekday()) + 6) % 7 }

// ClockOf is the time of day of t, in its zone.
func ClockOf(t time.Time) Clock { return Clock(t.Hour()*60 + t.Minute()) }
