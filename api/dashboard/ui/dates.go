package ui

import (
	"time"

	"github.com/parley-voice/parley/control/operator"
)

// Dates formats times in the time zone and the custom of an organization: "Jan 2, 3:04 PM" under the market rules of
// the United States, else "2 Jan, 15:04".
type Dates struct {
	Zone     *time.Location
	American bool
}

// DatesOf returns the formats of an organization.
func DatesOf(m operator.Membership) Dates { return Dates{zone(m.Timezone), m.Market == "us"} }

// format uses the first layout in the United States, else the second.
func (d Dates) format(t time.Time, american, other string) string {
	if d.American {
		other = american
	}
	return t.In(d.Zone).Format(other)
}

// Short returns day and minute of a time in this year, and the date of other times.
func (d Dates) Short(t, now time.Time) string {
	if t.In(d.Zone).Year() != now.In(d.Zone).Year() {
		return d.format(t, "Jan 2, 2006", "2 Jan 2006")
	}
	return d.format(t, "Jan 2, 3:04 PM", "2 Jan, 15:04")
}

// Full returns weekday, date, second and time zone.
func (d Dates) Full(t time.Time) string {
	return d.format(t, "Mon, Jan 2, 2006, 3:04:05 PM MST", "Mon 2 Jan 2006, 15:04:05 MST")
}

// Minute returns date, minute and time zone.
func (d Dates) Minute(t time.Time) string {
	return d.format(t, "Jan 2, 2006, 3:04 PM MST", "2 Jan 2006, 15:04 MST")
}

// Day returns the day of the month.
func (d Dates) Day(t time.Time) string { return d.format(t, "Jan 2", "2 Jan") }

// Weekday returns weekday and day.
func (d Dates) Weekday(t time.Time) string { return d.format(t, "Mon, Jan 2", "Mon 2 Jan") }

// WeekdayClock returns weekday, hour and minute.
func (d Dates) WeekdayClock(t time.Time) string { return d.format(t, "Mon 3:04 PM", "Mon 15:04") }

// Date returns weekday, day and year.
func (d Dates) Date(t time.Time) string { return d.format(t, "Mon, Jan 2, 2006", "Mon 2 Jan 2006") }

// Calendar formats a date such as "2026-11-26".
func (d Dates) Calendar(date string) string {
	t, err := time.ParseInLocation(time.DateOnly, date, d.Zone)
	if err != nil {
		return date
	}
	return d.format(t, "Jan 2, 2006", "2 Jan 2006")
}

// Clock returns hour and minute.
func (d Dates) Clock(t time.Time) string { return d.format(t, "3:04 PM", "15:04") }

// TimeOfDay returns a time such as "09:00" or "24:00".
func (d Dates) TimeOfDay(clock string) string {
	if !d.American {
		return clock
	}
	if t, err := time.Parse("15:04", clock); err == nil {
		return t.Format("3:04 PM")
	}
	return "midnight"
}

// Hour returns the beginning of an hour of the day, from 0 to 24.
func (d Dates) Hour(h int) string {
	t := time.Date(2000, 1, 1, h, 0, 0, 0, time.UTC)
	if d.American {
		return t.Format("3 PM")
	}
	return t.Format("15:04")
}

// Second returns the time of day with seconds.
func (d Dates) Second(t time.Time) string { return d.format(t, "3:04:05 PM", "15:04:05") }
