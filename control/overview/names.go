package overview

import (
	"slices"
	"time"
)

// Key names an outcome in addresses and exports.
func (o Outcome) Key() string { return outcomeKeys[o] }

var outcomeKeys = [Outcomes]string{ //nolint:gochecknoglobals // read-only table
	Answered:  "answered",
	Machine:   "machine",
	NoAnswer:  "no_answer",
	Busy:      "busy",
	Refused:   "refused",
	Faulted:   "failed",
	NotDialed: "not_dialed",
}

// OutcomesOf returns the outcomes that a key selects: that of one outcome, or dialed or connected.
func OutcomesOf(key string) []Outcome {
	switch key {
	case "dialed":
		return []Outcome{Answered, Machine, NoAnswer, Busy, Refused, Faulted}
	case "connected":
		return []Outcome{Answered, Machine}
	}
	for o := range Outcomes {
		if o.Key() == key {
			return []Outcome{o}
		}
	}
	return nil
}

// A Span is a time range without its end.
type Span struct{ From, To time.Time }

// Spans returns the parts of a time range that are on a weekday and in an hour of the day. Each full hour of UTC
// belongs to the local hour in which it begins, as on the heat map. A negative weekday or hour selects all.
func Spans(from, to time.Time, zone *time.Location, weekday, hour int) (all []Span) {
	for at := from.UTC().Truncate(time.Hour); at.Before(to); at = at.Add(time.Hour) {
		day, h := LocalHour(at, zone)
		if weekday >= 0 && day != weekday || hour >= 0 && h != hour {
			continue
		}
		if n := len(all) - 1; n >= 0 && all[n].To.Equal(at) {
			all[n].To = at.Add(time.Hour)
			continue
		}
		all = append(all, Span{at, at.Add(time.Hour)})
	}
	for i := range all {
		if all[i].From.Before(from) {
			all[i].From = from
		}
		if all[i].To.After(to) {
			all[i].To = to
		}
	}
	return slices.Clip(all)
}

// LocalHour returns the weekday, from Monday, which is 0, and the hour of the day.
func LocalHour(at time.Time, zone *time.Location) (weekday, hour int) {
	local := at.In(zone)
	return (int(local.Weekday()) + 6) % 7, local.Hour()
}
