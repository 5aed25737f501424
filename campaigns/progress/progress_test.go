package progress

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/pricing"
)

// TestReasons checks that if several hold reasons apply, the first in the order of changes is reported.
func TestReasons(t *testing.T) {
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2027, 3, 2, 17, 0, 0, 0, time.UTC) // a Tuesday in New York
	york := market.Location{States: []string{"NY"}, Zones: []string{"America/New_York"}}
	evening := []campaigns.Shift{{Days: []int{0, 1, 2, 3, 4, 5, 6}, Start: "18:00", End: "19:00"}}
	type change struct {
		reason string
		do     func(*Facts, *Group)
	}
	changes := []change{ // each of these reasons holds the contacts; in order of precedence
		{plan.NotRunning, func(f *Facts, _ *Group) { f.Campaign.Status = campaigns.Paused }},
		{plan.FrequencyCap, func(_ *Facts, g *Group) { g.Cap = "daily" }},
		{market.OutsideWindow, func(f *Facts, _ *Group) { f.Now = noon.Add(12 * time.Hour) }},
		{plan.OutsideHours, func(f *Facts, _ *Group) { f.Campaign.WorkingHours = evening }},
		{plan.RetryWait, func(_ *Facts, g *Group) { g.Wait = true }},
		{plan.NotBefore, func(_ *Facts, g *Group) { g.Early = true }},
		{NotAfter, func(_ *Facts, g *Group) { g.Late = true }},
		{plan.ScreenStale, func(f *Facts, _ *Group) { f.Stale = true }},
		{plan.CarrierPaused, func(f *Facts, _ *Group) { f.Paused = true }},
		{plan.RouteUnavailable, func(f *Facts, _ *Group) { f.Route = false }},
		{plan.ProviderUnavailable, func(f *Facts, _ *Group) { f.Down = true }},
		{plan.TooManyFailures, func(f *Facts, _ *Group) { f.Failing = true }},
	}
	compute := func(all ...change) Progress {
		pkg := us
		f := Facts{
			Now: noon, Opens: noon, Route: true, Counts: campaigns.Counts{ByState: map[campaigns.State]int{campaigns.Pending: 3, campaigns.Done: 0}},
			Campaign: campaigns.Campaign{Status: campaigns.Running, Timezone: "America/New_York", Classification: market.Marketing},
		}
		g := Group{Key: plan.Group{Location: york}.Key(), N: 3, Next: noon.Add(time.Hour)}
		for _, c := range all {
			if c.do == nil {
				pkg = nil
				continue
			}
			c.do(&f, &g)
		}
		if c := f.Campaign; pkg != nil {
			planned, err := store.Organization{Zone: "America/New_York", Window: market.Always()}.Plan(c, pkg)
			if err != nil {
				t.Fatal(err)
			}
			f.Calendar = plan.NewCalendar(planned, &plan.LawCache{})
		}
		f.Waiting = []Group{g}
		return Compute(f)
	}
	full := change{"", func(f *Facts, _ *Group) { f.Full = []control.Code{control.CodeOrganizationLimit} }}
	if p := compute(full); p.Ready != 3 || p.Holds != 0 || fmt.Sprint(p.ByState, p.Pace.LimitedBy) != "map[pending:3] [organization_daily_limit]" {
		t.Errorf("%+v", p)
	}
	if p := compute(full, changes[0]); len(p.Pace.LimitedBy) > 0 { // no contact is ready
		t.Errorf("limited by %v", p.Pace.LimitedBy)
	}
	short := change{"", func(f *Facts, _ *Group) {
		f.Spending = admission.Spending{Budget: 100, Spent: 50, Expected: 20, Calls: 2}
	}}
	want := Budget{Limit: 100, Spent: 50, InProgress: 40, Left: 10, Expected: 20}
	if p := compute(short, full); p.Ready != 3 || fmt.Sprint(p.Pace.LimitedBy) != "[campaign_budget_exceeded organization_daily_limit]" || *p.Budget != want {
		t.Errorf("%v %+v", p.Pace.LimitedBy, p.Budget)
	}
	for i, first := range changes {
		for _, second := range changes[i:] {
			if p := compute(first, second); p.Ready != 0 || p.Holds != 3 || p.HeldReasons[first.reason] != 3 {
				t.Errorf("%s and %s: %v", first.reason, second.reason, p.HeldReasons)
			}
		}
	}
	for _, c := range []change{changes[1], changes[4], changes[5]} {
		if p := compute(c); !p.Next.Equal(noon.Add(time.Hour)) || *p.Pace.NextCallAt != noon.Add(time.Hour).Unix() {
			t.Errorf("%s until %v", c.reason, p.Next)
		}
	}
	if p := compute(changes[1]); p.Frequency.Held != 3 || p.Frequency.ByCap["daily"] != 3 {
		t.Errorf("%+v", p.Frequency)
	}
	noLocation := change{"", func(_ *Facts, g *Group) { g.Key = plan.Group{}.Key() }}
	if p := compute(noLocation); p.HeldReasons[market.NoZone] != 3 {
		t.Errorf("no location: %v", p.HeldReasons)
	}
	if p := compute(noLocation, changes[3]); p.HeldReasons[plan.OutsideHours] != 3 {
		t.Errorf("no location, and outside working hours: %v", p.HeldReasons)
	}
	for _, c := range changes[1:] { // without a market no other reason counts
		if p := compute(change{}, c); p.HeldReasons[plan.NoMarket] != 3 || p.Holds != 3 {
			t.Errorf("without a market: %v", p.HeldReasons)
		}
	}
	// Noon in New York is six in the evening in Paris.
	paris := change{"", func(_ *Facts, g *Group) { g.Key = plan.Group{Location: york, Named: "Europe/Paris"}.Key() }}
	contactZone := change{"", func(f *Facts, _ *Group) { f.Campaign.ContactTimezone = true }}
	if p := compute(changes[3], paris); p.Holds != 3 {
		t.Errorf("by the campaign's clock: %v", p.HeldReasons)
	}
	if p := compute(changes[3], paris, contactZone); p.Ready != 3 {
		t.Errorf("by the contact's clock: %v", p.HeldReasons)
	}
}

// TestNextCallTime checks that the next call is when the law, the working hours and the contact's own times all allow
// it.
func TestNextCallTime(t *testing.T) {
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		when, fault := time.ParseInLocation("2006-01-02 15:04", text, york)
		if fault != nil {
			t.Fatal(fault)
		}
		return when
	}
	ny := plan.Group{Location: market.Location{States: []string{"NY"}, Zones: []string{"America/New_York"}}}.Key()
	la := plan.Group{Location: market.Location{States: []string{"CA"}, Zones: []string{"America/Los_Angeles"}}}.Key()
	week := []campaigns.Shift{{Days: []int{0, 1, 2, 3, 4}, Start: "09:00", End: "18:00"}}
	evening := []campaigns.Shift{{Days: []int{0, 1, 2, 3, 4}, Start: "09:00", End: "24:00"}}
	for _, c := range []struct {
		name    string
		now     string
		hours   []campaigns.Shift
		ends    string
		waiting []Group
		want    string
	}{
		{"Sunday, from Monday", "2026-11-22 16:00", week, "", []Group{{Key: ny, N: 25}}, "2026-11-23 09:00"},
		{"at night, the law opens first", "2026-11-24 05:00", week, "", []Group{{Key: ny, N: 1}}, "2026-11-24 09:00"},
		{"the first of two places", "2026-11-24 22:30", evening, "", []Group{{Key: la, N: 1}, {Key: ny, N: 1}}, "2026-11-24 22:30"},
		{"a retry that falls into the night", "2026-11-24 17:00", week, "", []Group{{Key: ny, N: 1, Wait: true, Next: at("2026-11-24 20:00")}}, "2026-11-25 09:00"},
		{"a retry in an hour", "2026-11-24 12:00", week, "", []Group{{Key: ny, N: 1, Wait: true, Next: at("2026-11-24 13:00")}}, "2026-11-24 13:00"},
		{"a retry on Monday, asked on Saturday", "2026-11-21 12:00", week, "", []Group{{Key: ny, N: 1, Wait: true, Next: at("2026-11-23 11:00")}}, "2026-11-23 11:00"},
		{"over before it", "2026-11-22 16:00", week, "2026-11-23 08:00", []Group{{Key: ny, N: 1}}, ""},
		{"its time is over", "2026-11-22 16:00", week, "", []Group{{Key: ny, N: 1, Late: true}}, ""},
	} {
		k := campaigns.Campaign{Status: campaigns.Running, Timezone: "America/New_York", Classification: market.Marketing, WorkingHours: c.hours}
		if c.ends != "" {
			k.EndsAt = at(c.ends)
		}
		planned, err := store.Organization{Zone: "America/New_York", Window: market.Always()}.Plan(k, us)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, g := range c.waiting {
			n += g.N
		}
		p := Compute(Facts{
			Now: at(c.now), Campaign: k, Opens: at(c.now), Route: true, Waiting: c.waiting, Calendar: plan.NewCalendar(planned, &plan.LawCache{}),
			Counts: campaigns.Counts{ByState: map[campaigns.State]int{campaigns.Pending: n}},
		})
		if p.Ready > 0 {
			p.Next = at(c.now)
		}
		if want := (time.Time{}); c.want != "" && !p.Next.Equal(at(c.want)) || c.want == "" && !p.Next.Equal(want) {
			t.Errorf("%s: %v, want %s (%v)", c.name, p.Next.In(york), c.want, p.HeldReasons)
		}
	}
}

// TestCost checks that the cost per call is the cost divided by the calls that a person answered, rounded to
// billionths.
func TestCost(t *testing.T) {
	for name, tt := range map[string]struct {
		outcomes map[retry.Outcome]int
		want     string
	}{
		"no answer": {map[retry.Outcome]int{retry.Busy: 3, retry.Voicemail: 1}, `{"amount":1,"per_answered_call":null}`},
		"answers":   {map[retry.Outcome]int{retry.Answered: 4, retry.ShortCall: 2, retry.Busy: 1}, `{"amount":1,"per_answered_call":0.166666667}`},
	} {
		got, err := json.Marshal(Compute(Facts{Outcomes: tt.outcomes, Spending: admission.Spending{Spent: pricing.Round(1)}}).Cost)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, tt.want)
		}
	}
}
