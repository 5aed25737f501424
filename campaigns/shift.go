package campaigns

import (
	"fmt"
	"slices"

	"github.com/parley-voice/parley/campaigns/market"
)

// A Shift is one row of working hours: on these days, 0 being Monday, from
// start to end, both HH:MM, start before end.
type Shift struct {
	Days  []int  `json:"days"`
	Start string `json:"start"`
	End   string `json:"end"`
}

// hours reads a row, and returns it with its days in order.
func (s Shift) hours() (market.Hours, Shift, error) {
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
		return market.Hours{}, s, fmt.Errorf("%s is not before %s: a shift past midnight is two rows", s.Start, s.End)
	case len(days) == 0:
		return market.Hours{}, s, fmt.Errorf("days is empty: name some of 0 (Monday) to 6")
	case days[0] < 0 || days[len(days)-1] > 6:
		return market.Hours{}, s, fmt.Errorf("days are 0 (Monday) to 6, not %v", s.Days)
	}
	s.Days = days
	return market.Hours{From: from, To: to}, s, nil
}

// wider tells whether a row reaches out of a floor.
func (s Shift) wider(h market.Hours, floor market.Week) bool {
	return slices.ContainsFunc(s.Days, func(d int) bool { return !floor[d].Covers(h) })
}

// Working is the hours of a day of the week, 0 being Monday, of a campaign:
// its own, or all day where it has none.
func (c Campaign) Working(day int) []market.Hours {
	if len(c.WorkingHours) == 0 {
		return []market.Hours{market.Always()[day]}
	}
	var all []market.Hours
	for _, s := range c.WorkingHours {
		if h, in, err := s.hours(); err == nil && slices.Contains(in.Days, day) {
			all = append(all, h)
		}
	}
	return all
}
