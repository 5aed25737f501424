package progress

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// TestReasons: of all that keeps a contact the first counts, in this order.
func TestReasons(t *testing.T) {
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2027, 3, 2, 17, 0, 0, 0, time.UTC) // a Tuesday in New York
	york := market.Place{States: []string{"NY"}, Zones: []string{"America/New_York"}}
	evening := []campaigns.Shift{{Days: []int{0, 1, 2, 3, 4, 5, 6}, Start: "18:00", End: "19:00"}}
	type change struct {
		reason string
		do     func(*Facts, *Group)
	}
	changes := []change{ // each keeps; the first of them is told
		{plan.NotRunning, func(f *Facts, _ *Group) { f.Campaign.Status = campaigns.Paused }},
		{plan.FrequencyCap, func(_ *Facts, g *Group) { g.Cap = "daily" }},
		{market.OutsideWindow, func(f *Facts, _ *Group) { f.Now = noon.Add(12 * time.Hour) }},
		{plan.OutsideHours, func(f *Facts, _ *Group) { f.Campaign.WorkingHours = evening }},
		{plan.RetryWait, func(_ *Facts, g *Group) { g.Wait = true }},
		{plan.NotBefore, func(_ *Facts, g *Group) { g.Early = true }},
		{NotAfter, func(_ *Facts, g *Group) { g.Late = true }},
		{plan.ScreenStale, func(f *Facts, _ *Group) { f.Stale = true }},
		{plan.RouteUnavailable, func(f *Facts, _ *Group) { f.Route = false }},
	}
	look := func(all ...change) Progress {
		pkg := us
		f := Facts{
			Now: noon, Route: true, Counts: campaigns.Counts{ByState: map[campaigns.State]int{campaigns.Pending: 3, campaigns.Done: 0}},
			Campaign: campaigns.Campaign{Status: campaigns.Running, Timezone: "America/New_York", Classification: market.Marketing},
		}
		g := Group{Key: plan.Group{Place: york}.Key(), N: 3, Next: noon.Add(time.Hour)}
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
			f.Calendar = plan.NewCalendar(planned, &plan.Almanac{})
		}
		f.Waiting = []Group{g}
		return Of(f)
	}
	full := change{"", func(f *Facts, _ *Group) { f.Full = []control.Code{control.CodeOrganizationLimit} }}
	if p := look(full); p.Ready != 3 || p.Holds != 0 || fmt.Sprint(p.ByState, p.Pace.LimitedBy) != "map[pending:3] [organization_daily_limit]" {
		t.Errorf("%+v", p)
	}
	if p := look(full, changes[0]); len(p.Pace.LimitedBy) > 0 { // nobody would be called
		t.Errorf("limited by %v", p.Pace.LimitedBy)
	}
	for i, first := range changes {
		for _, second := range changes[i:] {
			if p := look(first, second); p.Ready != 0 || p.Holds != 3 || p.HeldReasons[first.reason] != 3 {
				t.Errorf("%s and %s: %v", first.reason, second.reason, p.HeldReasons)
			}
		}
	}
	for _, c := range []change{changes[1], changes[4], changes[5]} {
		if p := look(c); !p.Until[c.reason].Equal(noon.Add(time.Hour)) {
			t.Errorf("%s until %v", c.reason, p.Until)
		}
	}
	if p := look(changes[1]); p.Frequency.Held != 3 || p.Frequency.ByCap["daily"] != 3 {
		t.Errorf("%+v", p.Frequency)
	}
	nowhere := change{"", func(_ *Facts, g *Group) { g.Key = plan.Group{}.Key() }}
	if p := look(nowhere); p.HeldReasons[market.NoZone] != 3 {
		t.Errorf("nowhere: %v", p.HeldReasons)
	}
	if p := look(nowhere, changes[3]); p.HeldReasons[plan.OutsideHours] != 3 {
		t.Errorf("nowhere, and outside working hours: %v", p.HeldReasons)
	}
	for _, c := range changes[1:] { // without a market nothing else counts
		if p := look(change{}, c); p.HeldReasons[plan.NoMarket] != 3 || p.Holds != 3 {
			t.Errorf("without a market: %v", p.HeldReasons)
		}
	}
	// Noon in New York is six in the evening in Paris.
	paris := change{"", func(_ *Facts, g *Group) { g.Key = plan.Group{Place: york, Named: "Europe/Paris"}.Key() }}
	theirs := change{"", func(f *Facts, _ *Group) { f.Campaign.ContactTimezone = true }}
	if p := look(changes[3], paris); p.Holds != 3 {
		t.Errorf("by the campaign's clock: %v", p.HeldReasons)
	}
	if p := look(changes[3], paris, theirs); p.Ready != 3 {
		t.Errorf("by the contact's clock: %v", p.HeldReasons)
	}
}
