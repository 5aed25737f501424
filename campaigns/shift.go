package campaigns

import (
	"fmt"
	"slices"

	"github.com/parley-voice/parley/campaigns/market"
)

// A Shift is one row of working hours: days (0 is Monday), start and end as HH:MM.
type Shift struct {
	Days  []int  `json:"days"`
	Start string `json:"start"`
	End   string `json:"end"`
}

// parse validates a shift. It returns the hours, and the shift with sorted days.
func (s Shift) parse() (market.Hours, Shift, error) {
	from, err := market.ParseClock(s.Start)
	if err != nil {
		return market.Hours{}, s, err
	}
	to, err := market.ParseClock(s.End)
	if err != nil {
		return market.Hours{}, s, err
	}
	days := slices.Compact(slices.Sorted(slices.Values(s.Days)))
	switch {
	case from >= to:
		return market.Hours{}, s, fmt.Errorf("%s is not before %s: split a shift past midnight into two rows", s.Start, s.End)
	case len(days) == 0:
		return market.Hours{}, s, fmt.Errorf("days is empty: use 0 (Monday) to 6")
	case days[0] < 0 || days[len(days)-1] > 6:
		return market.Hours{}, s, fmt.Errorf("days must be 0 (Monday) to 6, not %v", s.Days)
	}
	s.Days = days
	return market.Hours{From: from, To: to}, s, nil
}

// isWider reports whether the hours h of the shift exceed the allowed hours, floor, on one of its days.
func (s Shift) isWider(h market.Hours, floor market.Week) bool {
	return slices.ContainsFunc(s.Days, func(d int) bool { return !floor[d].Covers(h) })
}

// HoursOn returns the working hours of a weekday, 0 being Monday; all day if the
// campaign has none.
func (c Campaign) HoursOn(day int) []market.Hours {
	if len(c.WorkingHours) == 0 {
		return []market.Hours{market.Always()[day]}
	}
	var all []market.Hours
	for _, s := range c.WorkingHours {
		if h, in, err := s.parse(); err == nil && slices.Contains(in.Days, day) {
			all = append(all, h)
		}
	}
	return all
}
