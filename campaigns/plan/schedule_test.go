package plan

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/campaigns/market"
)

func load(tb testing.TB, code string) *market.Package {
	tb.Helper()
	p, err := market.Load(code)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func zone(tb testing.TB, name string) *time.Location {
	tb.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

// allDay returns unrestricted working hours.
func allDay() (hours [7][]market.Hours) {
	for d := range hours {
		hours[d] = []market.Hours{{From: 0, To: 24 * 60}}
	}
	return hours
}

func locate(tb testing.TB, p *market.Package, number string) market.Location {
	tb.Helper()
	n, err := p.Read(number)
	if err != nil {
		tb.Fatal(err)
	}
	where, err := p.Locate(n, "", "")
	if err != nil {
		tb.Fatal(err)
	}
	return where
}

// TestSlots compares slots with a check of every minute. The zones include clock changes of a whole hour and of half
// an hour.
func TestSlots(t *testing.T) {
	us := load(t, "us")
	zones := []string{
		"America/New_York", "America/Phoenix", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns", "America/Sao_Paulo", "Pacific/Chatham", "UTC",
	}
	begins := []time.Time{
		time.Date(2027, 3, 13, 0, 0, 0, 0, time.UTC), time.Date(2027, 11, 6, 0, 0, 0, 0, time.UTC), time.Date(2027, 4, 3, 0, 0, 0, 0, time.UTC),
		time.Date(2027, 10, 2, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC),
	}
	rapid.Check(t, func(t *rapid.T) {
		hours := func(name string) market.Hours {
			a, b := rapid.IntRange(0, 24*60).Draw(t, name), rapid.IntRange(0, 24*60).Draw(t, name)
			return market.Hours{From: market.Clock(min(a, b)), To: market.Clock(max(a, b))}
		}
		place := market.Location{
			States: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"RI", "TX", "FL", "LA", "CA", "AL", "NE"}), 0, 2, rapid.ID).Draw(t, "states"),
			Zones:  rapid.SliceOfNDistinct(rapid.SampledFrom(zones), 1, 2, rapid.ID).Draw(t, "zones"),
		}
		class := rapid.SampledFrom(market.Classifications()).Draw(t, "class")
		week := allDay()
		for d := range 7 {
			if rapid.Bool().Draw(t, "own hours") {
				week[d] = []market.Hours{hours("hours"), hours("hours")}
			}
		}
		in, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		s := schedule{law: (&LawCache{}).law(us, "", place, class), shifts: []*shifts{{zone: in, week: week}}}
		reasonAt := func(at time.Time) string {
			if v := us.Legal(at, place, class); !v.Legal {
				return v.Reason
			}
			local := at.In(in)
			for _, h := range week[market.Weekday(local)] {
				if h.Contains(market.ClockOf(local)) {
					return ""
				}
			}
			return OutsideHours
		}
		at := rapid.SampledFrom(begins).Draw(t, "day").Add(time.Duration(rapid.IntRange(0, 2*24*3600).Draw(t, "second")) * time.Second)
		for range 6 {
			slot := s.at(at)
			if !slot.From.Equal(at) || !slot.Until.After(at) || slot.Until.Sub(at) > maxSlot {
				t.Fatalf("slot of %v: %v to %v", at, slot.From, slot.Until)
			}
			for m := at; m.Before(slot.Until); m = m.Truncate(time.Minute).Add(time.Minute) {
				if reason := reasonAt(m); reason != slot.Reason {
					t.Fatalf("at %v: %q, the slot from %v to %v has %q", m, reason, at, slot.Until, slot.Reason)
				}
			}
			at = slot.Until
		}
	})
}

// TestSchedule checks that the law, the working hours and the organization's window each forbid calls, with their own
// reasons.
func TestSchedule(t *testing.T) {
	us, kz := load(t, "us"), load(t, "kz")
	office := [7][]market.Hours{}
	for d := range 5 {
		office[d] = []market.Hours{{From: 9 * 60, To: 12 * 60}, {From: 13 * 60, To: 17 * 60}}
	}
	var window market.Week
	for d := range window {
		window[d] = market.Hours{From: 10 * 60, To: 20 * 60}
	}
	ny := zone(t, "America/New_York")
	plain := Campaign{Market: us, Class: market.Servicing, Hours: office, Zone: ny, WindowZone: ny}
	always := plain
	always.Hours = allDay()
	texas := always
	texas.Class = market.Marketing
	almaty := Campaign{Market: kz, Class: market.Marketing, Hours: allDay(), Zone: ny, Window: window, WindowZone: zone(t, "Asia/Almaty")}
	named := plain
	named.ContactZone = true
	tokyo := market.Location{Zones: []string{"America/Los_Angeles"}}
	for _, c := range []struct {
		name   string
		c      Campaign
		place  market.Location
		named  string
		at     string
		in     string // zone of the time
		reason string
		until  string
	}{
		{"open until noon", plain, locate(t, us, "+12125550123"), "", "2026-11-20 10:00", "America/New_York", "", "2026-11-20 12:00"},
		{"lunch", plain, locate(t, us, "+12125550123"), "", "2026-11-20 12:00", "America/New_York", OutsideHours, "2026-11-20 13:00"},
		{"after work the law has hours left", plain, locate(t, us, "+12125550123"), "", "2026-11-20 17:00", "America/New_York", OutsideHours, "2026-11-20 21:00"},
		{"night", plain, locate(t, us, "+12125550123"), "", "2026-11-20 21:00", "America/New_York", OutsideLaw, "2026-11-21 08:00"},
		{"Texas, Sunday morning", texas, locate(t, us, "+15125550123"), "", "2026-11-22 11:59", "America/Chicago", OutsideLaw, "2026-11-22 12:00"},
		{"the organization's window", almaty, locate(t, kz, "+77012345678"), "", "2026-11-20 09:30", "Asia/Almaty", OutsideHours, "2026-11-20 10:00"},
		{"open in Almaty", almaty, locate(t, kz, "+77012345678"), "", "2026-11-20 10:00", "Asia/Almaty", "", "2026-11-20 20:00"},
		{"two zones, the later morning counts", always, locate(t, us, "+18505550123"), "", "2026-11-20 08:30", "America/New_York", OutsideLaw, "2026-11-20 09:00"},
		{"two zones, the earlier evening counts", always, locate(t, us, "+18505550123"), "", "2026-11-20 20:00", "America/New_York", "", "2026-11-20 21:00"},
		{"the row's zone has its own hours", named, tokyo, "America/Los_Angeles", "2026-11-20 09:00", "America/Los_Angeles", "", "2026-11-20 12:00"},
		{"no zone is named", named, tokyo, "", "2026-11-20 09:00", "America/Los_Angeles", OutsideHours, "2026-11-20 10:00"},
	} {
		in := zone(t, c.in)
		read := func(s string) time.Time {
			at, err := time.ParseInLocation("2006-01-02 15:04", s, in)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		slot := NewCalendar(c.c, &LawCache{}).Slot(read(c.at), Group{Location: c.place, Named: c.named}.Key())
		if slot.Reason != c.reason || !slot.Until.Equal(read(c.until)) {
			t.Errorf("%s: %q until %v, want %q until %s", c.name, slot.Reason, slot.Until.In(in), c.reason, c.until)
		}
	}
	k := NewCalendar(plain, &LawCache{})
	s := k.group(Group{Location: tokyo}.Key())
	saturday, monday := time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), time.Date(2026, 11, 23, 16, 0, 0, 0, time.UTC)
	if at, ok := s.nextOpen(saturday, time.Time{}); !ok || !at.Equal(monday) {
		t.Errorf("after Saturday it opens at %v, %v", at, ok)
	}
	if _, ok := s.nextOpen(saturday, monday); ok {
		t.Error("it opens at the end of the search")
	}
	for _, key := range []string{";;", "NY"} {
		if slot := NewCalendar(always, &LawCache{}).Slot(saturday, key); slot.Reason != ZoneUnresolved {
			t.Errorf("%q: %q", key, slot.Reason)
		}
		if slot := k.Slot(saturday, key); slot.Reason != OutsideHours {
			t.Errorf("%q, outside working hours: %q", key, slot.Reason)
		}
	}
}

func BenchmarkSlot(b *testing.B) {
	us := load(b, "us")
	s := schedule{law: (&LawCache{}).law(us, "", locate(b, us, "+18505550123"), market.Marketing)}
	begin := time.Unix(1795222586, 0)
	at := begin
	for b.Loop() {
		if at = s.at(at).Until; at.Sub(begin) > 10*365*24*time.Hour {
			at = begin
		}
	}
	if at.IsZero() {
		b.Fatal("no slot")
	}
}

func TestReasons(t *testing.T) {
	if all := Reasons(); len(all) != len(slices.Compact(slices.Sorted(slices.Values(all)))) || len(all) != 16 {
		t.Errorf("%v", all)
	}
}
