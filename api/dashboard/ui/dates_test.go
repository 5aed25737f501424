package ui

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/control/operator"
)

// TestDates has the formats of both customs.
func TestDates(t *testing.T) {
	at, now := time.Date(2026, 11, 27, 2, 5, 9, 0, time.UTC), time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	us := DatesOf(operator.Membership{Timezone: "America/New_York", Market: "us"})
	kz := DatesOf(operator.Membership{Timezone: "Asia/Almaty", Market: "kz"})
	for name, row := range map[string]struct{ got, want string }{
		"us short":             {us.Short(at, now), "Nov 26, 9:05 PM"},
		"us last year":         {us.Short(at, now.AddDate(1, 0, 0)), "Nov 26, 2026"},
		"us full":              {us.Full(at), "Thu, Nov 26, 2026, 9:05:09 PM EST"},
		"us minute":            {us.Minute(at), "Nov 26, 2026, 9:05 PM EST"},
		"us day":               {us.Day(at), "Nov 26"},
		"us weekday":           {us.Weekday(at), "Thu, Nov 26"},
		"us weekday and clock": {us.WeekdayClock(at), "Thu 9:05 PM"},
		"us date":              {us.Date(at), "Thu, Nov 26, 2026"},
		"us calendar":          {us.Calendar("2026-11-26") + ", " + us.Calendar("soon"), "Nov 26, 2026, soon"},
		"kz calendar":          {kz.Calendar("2026-11-26"), "26 Nov 2026"},
		"kz weekday and clock": {kz.WeekdayClock(at), "Fri 07:05"},
		"kz date":              {kz.Date(at), "Fri 27 Nov 2026"},
		"us clock":             {us.Clock(at), "9:05 PM"},
		"us second":            {us.Second(at), "9:05:09 PM"},
		"kz short":             {kz.Short(at, now), "27 Nov, 07:05"},
		"kz last year":         {kz.Short(at, now.AddDate(1, 0, 0)), "27 Nov 2026"},
		"kz full":              {kz.Full(at), "Fri 27 Nov 2026, 07:05:09 +05"},
		"kz minute":            {kz.Minute(at), "27 Nov 2026, 07:05 +05"},
		"kz day":               {kz.Day(at), "27 Nov"},
		"kz weekday":           {kz.Weekday(at), "Fri 27 Nov"},
		"kz clock":             {kz.Clock(at), "07:05"},
		"kz second":            {kz.Second(at), "07:05:09"},
		"us time of day":       {us.TimeOfDay("00:00") + ", " + us.TimeOfDay("17:30") + ", " + us.TimeOfDay("24:00"), "12:00 AM, 5:30 PM, midnight"},
		"kz time of day":       {kz.TimeOfDay("17:30") + ", " + kz.TimeOfDay("24:00"), "17:30, 24:00"},
		"us hour":              {us.Hour(0) + ", " + us.Hour(15) + ", " + us.Hour(24), "12 AM, 3 PM, 12 AM"},
		"kz hour":              {kz.Hour(0) + ", " + kz.Hour(15) + ", " + kz.Hour(24), "00:00, 15:00, 00:00"},
	} {
		if row.got != row.want {
			t.Errorf("%s: got %q, want %q", name, row.got, row.want)
		}
	}
}
