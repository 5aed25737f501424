package campaigns

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
)

func TestNextOpen(t *testing.T) {
	var floor market.Week
	for d := range floor {
		floor[d] = market.Hours{From: 8 * 60, To: 21 * 60}
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	when := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		at, err := time.ParseInLocation("2006-01-02 15:04", s, zone)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	office := []Shift{{Days: []int{0, 1, 2, 3, 4}, Start: "09:00", End: "12:00"}, {Days: []int{0}, Start: "13:00", End: "22:00"}}
	for _, c := range []struct {
		name, now, starts, ends string
		hours                   []Shift
		floor                   market.Week
		want                    string // empty means never
	}{
		{"open now", "2026-11-20 10:00", "", "", office, floor, "2026-11-20 10:00"},
		{"before the day", "2026-11-20 06:00", "", "", nil, floor, "2026-11-20 08:00"},
		{"Friday noon to Monday", "2026-11-20 12:00", "", "", office, floor, "2026-11-23 09:00"},
		{"between two shifts", "2026-11-23 12:30", "", "", office, floor, "2026-11-23 13:00"},
		{"the floor ends a shift", "2026-11-23 21:30", "", "", office, floor, "2026-11-24 09:00"},
		{"the campaign starts later", "2026-11-20 10:00", "2026-11-25 11:00", "", office, floor, "2026-11-25 11:00"},
		{"the campaign ends before", "2026-11-20 12:00", "", "2026-11-23 09:00", office, floor, ""},
		{"no floor", "2026-11-20 12:00", "", "", office, market.Week{}, ""},
	} {
		k := Campaign{Timezone: "America/New_York", StartsAt: when(c.starts), EndsAt: when(c.ends), WorkingHours: c.hours}
		got, ok := k.NextOpen(when(c.now), c.floor)
		if ok != (c.want != "") || ok && !got.Equal(when(c.want)) {
			t.Errorf("%s: %v %v, want %q", c.name, got.In(zone), ok, c.want)
		}
	}
}
