package market

import (
	"fmt"
	"time"
)

// A Clock is a time of day in minutes after midnight, 0 to 1440.
type Clock int

// ParseClock parses HH:MM, 00:00 to 24:00.
func ParseClock(s string) (Clock, error) {
	if len(s) != 5 || s[2] != ':' || !isDigits(s[:2]+s[3:]) {
		return 0, fmt.Errorf("%q is not a time of day: use HH:MM, 00:00 to 24:00", s)
	}
	h, m := int(s[0]-'0')*10+int(s[1]-'0'), int(s[3]-'0')*10+int(s[4]-'0')
	if m > 59 || h > 24 || h == 24 && m > 0 {
		return 0, fmt.Errorf("%q is not a time of day: use HH:MM, 00:00 to 24:00", s)
	}
	return Clock(h*60 + m), nil
}

func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", c/60, c%60) }

func isDigits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

// Hours are a period of a day, To exclusive. They are empty if From is not before To.
type Hours struct{ From, To Clock }

// IsEmpty reports whether h has no time.
func (h Hours) IsEmpty() bool { return h.From >= h.To }

// Contains reports whether c lies in h.
func (h Hours) Contains(c Clock) bool { return c >= h.From && c < h.To }

// Covers reports whether all of x lies in h.
func (h Hours) Covers(x Hours) bool { return x.IsEmpty() || x.From >= h.From && x.To <= h.To }

// And returns the hours that both have.
func (h Hours) And(x Hours) Hours { return Hours{max(h.From, x.From), min(h.To, x.To)} }

// parseHours parses HH:MM-HH:MM, or none.
func parseHours(s string) (Hours, error) {
	if s == "none" {
		return Hours{}, nil
	}
	if len(s) != 11 || s[5] != '-' {
		return Hours{}, fmt.Errorf("%q are not hours: use HH:MM-HH:MM, or none", s)
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
		return Hours{}, fmt.Errorf("%q must end after it starts", s)
	}
	return Hours{from, to}, nil
}

// A Week has the hours of each day, Monday first.
type Week [7]Hours

// Always returns a week of 24-hour days.
func Always() Week {
	var w Week
	for i := range w {
		w[i] = Hours{0, 24 * 60}
	}
	return w
}

// And returns the hours that both weeks have.
func (w Week) And(x Week) Week {
	for i := range w {
		w[i] = w[i].And(x[i])
	}
	return w
}

// IsEmpty reports whether no day has hours.
func (w Week) IsEmpty() bool {
	for _, h := range w {
		if !h.IsEmpty() {
			return false
		}
	}
	return true
}

// Weekday returns the index of a day in a Week.
func Weekday(t time.Time) int { return (int(t.Weekday()) + 6) % 7 }

// ClockOf returns the time of day of t, in its zone.
func ClockOf(t time.Time) Clock { return Clock(t.Hour()*60 + t.Minute()) }
