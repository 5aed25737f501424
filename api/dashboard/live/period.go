package live

import (
	"net/url"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/overview"
)

// A period is a choice of the Overview page.
type period struct {
	Key  string
	days int
	slot int // hours of a slot of the charts
}

// periods returns the choices; the first is the default.
func periods() []period {
	return []period{
		{"day", 1, 1},
		{"week", 7, 6},
		{"month", 30, 24},
	}
}

func periodOf(key string) period {
	for _, p := range periods() {
		if p.Key == key {
			return p
		}
	}
	return periods()[0]
}

// spans are what the page compares: the period, and its complete hours with the same hours of the period before.
type spans struct {
	from, to               time.Time // the period; to is the end of the current hour
	done                   time.Time // end of the last complete hour
	beforeFrom, beforeDone time.Time
}

// at returns the period at a time. Several days begin at local midnight.
func (p period) at(now time.Time, zone *time.Location) spans {
	s := spans{done: now.UTC().Truncate(time.Hour)}
	s.to = s.done.Add(time.Hour)
	s.from = s.to.AddDate(0, 0, -1)
	if p.days > 1 {
		y, m, d := now.In(zone).Date()
		s.from = time.Date(y, m, d-p.days+1, 0, 0, 0, 0, zone).UTC().Truncate(time.Hour)
	}
	earlier := func(t time.Time) time.Time { return t.In(zone).AddDate(0, 0, -p.days).UTC().Truncate(time.Hour) }
	s.beforeFrom, s.beforeDone = earlier(s.from), earlier(s.done)
	return s
}

// A slot is a part of the period that the charts show.
type slot struct {
	overview.Sums

	from, to time.Time
}

// slots divides the period by local hours.
func (p period) slots(s spans, zone *time.Location) (all []slot) {
	part := func(t time.Time) (day, n int) {
		local := t.In(zone)
		return local.YearDay(), local.Hour() / p.slot
	}
	for at := s.from; at.Before(s.to); at = at.Add(time.Hour) {
		n := len(all)
		if n > 0 && p.slot > 1 {
			day, k := part(at)
			if d, last := part(all[n-1].from); d == day && last == k {
				all[n-1].to = at.Add(time.Hour)
				continue
			}
		}
		all = append(all, slot{from: at, to: at.Add(time.Hour)})
	}
	return all
}

// tick returns the text below a slot; many slots have none.
func (p period) tick(from time.Time, dates ui.Dates) string {
	local := from.In(dates.Zone)
	switch {
	case p.days == 1 && local.Hour()%6 == 0:
		return dates.Clock(from)
	case p.days == 7 && local.Hour() < p.slot:
		return local.Format("Mon")
	case p.days == 30 && local.Day()%5 == 1 && local.Day() < 31:
		return dates.Day(from)
	default:
		return ""
	}
}

// name returns a slot in words.
func (p period) name(s slot, dates ui.Dates) string {
	if p.slot == 24 {
		return dates.Weekday(s.from)
	}
	return dates.Weekday(s.from) + ", " + dates.Clock(s.from) + "–" + dates.Clock(s.to)
}

// links makes links to the calls behind a number.
type links struct {
	calls string // address of the list of calls
	zone  *time.Location
}

func linksOf(r *ui.Request) links { return links{r.URL("calls"), r.Zone()} }

// between returns the list of the calls of a time range with more filters: names and values.
func (l links) between(from, to time.Time, filters ...string) string {
	q := url.Values{
		"created_after": {from.In(l.zone).Format(time.RFC3339)}, "created_before": {to.In(l.zone).Format(time.RFC3339)},
	}
	for i := 0; i+1 < len(filters); i += 2 {
		q.Set(filters[i], filters[i+1])
	}
	return l.calls + "?" + q.Encode()
}
