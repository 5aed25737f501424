package campaigns

import (
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

// searchDays is the number of days that NextOpen searches.
const searchDays = 14

// NextOpen returns the first time within two weeks at which the working hours and floor both allow calls, in the
// campaign's zone. It returns false if there is no such time before the end of the campaign.
func (c Campaign) NextOpen(now time.Time, floor market.Week) (time.Time, bool) {
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return time.Time{}, false
	}
	from := now
	if c.StartsAt.After(from) {
		from = c.StartsAt
	}
	local := from.In(zone)
	for d := range searchDays + 1 {
		day := time.Date(local.Year(), local.Month(), local.Day()+d, 12, 0, 0, 0, zone)
		for _, h := range c.HoursOn(market.Weekday(day)) {
			if h = h.And(floor[market.Weekday(day)]); h.IsEmpty() {
				continue
			}
			begin, end := atClock(day, h.From), atClock(day, h.To)
			if begin.Before(from) {
				begin = from
			}
			if begin.Before(end) {
				return begin, c.EndsAt.IsZero() || begin.Before(c.EndsAt)
			}
		}
	}
	return time.Time{}, false
}

func atClock(day time.Time, c market.Clock) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), int(c)/60, int(c)%60, 0, 0, day.Location())
}
