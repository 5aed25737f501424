package progress

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// TestForecast checks when the calls end, by the pace and the calling hours.
func TestForecast(t *testing.T) {
	us, err := market.Load("us")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2027, 3, 2, 17, 0, 0, 0, time.UTC) // a Tuesday in New York
	york := plan.Group{Location: market.Location{States: []string{"NY"}, Zones: []string{"America/New_York"}}}.Key()
	angeles := plan.Group{Location: market.Location{States: []string{"CA"}, Zones: []string{"America/Los_Angeles"}}}.Key()
	office := []campaigns.Shift{{Days: []int{0, 1, 2, 3, 4}, Start: "09:00", End: "17:00"}}
	recent := func(at time.Time, calls int) Recent { return Recent{Calls: calls, First: at.Add(-time.Hour), Last: at} }
	for _, c := range []struct {
		name string
		do   func(*Facts)
		want Forecast
	}{
		{"within the hour", func(*Facts) {}, Forecast{At: noon.Add(time.Hour)}},
		{"not faster than requested", func(f *Facts) { f.Recent = recent(noon, 6001) }, Forecast{At: noon.Add(time.Hour)}},
		{"slower, because calls stopped", func(f *Facts) {
			f.Recent = Recent{Calls: 601, First: noon.Add(-time.Hour), Last: noon.Add(-6 * time.Minute)}
		}, Forecast{At: noon.Add(time.Hour)}},
		{"the next morning", func(f *Facts) {
			f.Campaign.WorkingHours, f.Recent, f.Waiting[0].N = office, recent(noon, 61), 360
		}, Forecast{At: noon.Add(22 * time.Hour)}},
		{"after the weekend, begun on Friday evening", func(f *Facts) {
			f.Now = noon.AddDate(0, 0, 3).Add(6 * time.Hour)
			f.Campaign.WorkingHours, f.Recent = office, recent(noon.AddDate(0, 0, 3), 601)
		}, Forecast{At: time.Date(2027, 3, 8, 15, 0, 0, 0, time.UTC)}},
		{"the west begins later, at nine", func(f *Facts) {
			f.Now = noon.Add(-2 * time.Hour)
			f.Waiting, f.Recent = []Group{{Key: york, N: 60}, {Key: angeles, N: 60}}, recent(f.Now, 61)
		}, Forecast{At: noon.Add(time.Hour)}},
		{"both share the pace", func(f *Facts) {
			f.Waiting = []Group{{Key: york, N: 500}, {Key: angeles, N: 100}}
		}, Forecast{At: noon.Add(time.Hour)}},
		{"half of the calls lead to another one", func(f *Facts) {
			f.Campaign.Retry.Attempts, f.Recent = 2, recent(noon, 61)
			f.Outcomes, f.Tried = map[retry.Outcome]int{retry.NoAnswer: 60, retry.Answered: 40}, 75
			f.Counts.Redials, f.Counts.ByState[campaigns.Pending], f.Waiting[0].N = 25, 125, 125
		}, Forecast{At: noon.Add(175 * time.Minute)}},
		{"a retry is due later", func(f *Facts) {
			f.Waiting = append(f.Waiting, Group{Key: york, Wait: true, N: 6, Next: noon.Add(2 * time.Hour), Last: noon.Add(3 * time.Hour)})
		}, Forecast{At: noon.Add(3 * time.Hour)}},
		{"the end comes first", func(f *Facts) { f.Campaign.EndsAt = noon.Add(45 * time.Minute) }, Forecast{At: noon.Add(45 * time.Minute), Missed: 150}},
		{"never", func(f *Facts) { f.Waiting[0].Key = plan.Group{}.Key() }, Forecast{At: noon.Add(horizon), Later: true}},
		{"late rows are not called", func(f *Facts) { f.Waiting[0].Late = true }, Forecast{At: noon}},
		{"paused", func(f *Facts) { f.Campaign.Status = campaigns.Paused }, Forecast{Why: plan.NotRunning}},
		{"no contact", func(f *Facts) { f.Counts.ByState[campaigns.Pending] = 0 }, Forecast{Why: NoContacts}},
		{"no market", func(f *Facts) { f.Calendar = nil }, Forecast{Why: plan.NoMarket}},
		{"no route", func(f *Facts) { f.Route = false }, Forecast{Why: plan.RouteUnavailable}},
		{"no budget", func(f *Facts) { f.Full = []control.Code{control.CodeOrganizationLimit} }, Forecast{Why: string(control.CodeOrganizationLimit)}},
		{"channels in use", func(f *Facts) { f.Full = []control.Code{control.CodeSubgroupConcurrency} }, Forecast{At: noon.Add(time.Hour)}},
		{"no calls", func(f *Facts) { f.Recent = Recent{} }, Forecast{Why: NoPace}},
		{"four calls", func(f *Facts) { f.Recent.Calls = 4 }, Forecast{Why: NoPace}},
		{"no call for long", func(f *Facts) { f.Recent = recent(noon.Add(-11*time.Minute), 601) }, Forecast{Why: Stalled}},
	} {
		f := Facts{
			Now: noon, Opens: noon, Route: true, Recent: recent(noon, 601), Counts: campaigns.Counts{ByState: map[campaigns.State]int{campaigns.Pending: 600}},
			Campaign: campaigns.Campaign{Status: campaigns.Running, Timezone: "America/New_York", Classification: market.Marketing, CallsPerMinute: 10},
			Waiting:  []Group{{Key: york, N: 600}},
		}
		calendar := func() {
			planned, err := store.Organization{Zone: "America/New_York", Window: market.Always()}.Plan(f.Campaign, us)
			if err != nil {
				t.Fatal(err)
			}
			f.Calendar = plan.NewCalendar(planned, &plan.LawCache{})
		}
		calendar()
		c.do(&f)
		if f.Calendar != nil {
			calendar()
		}
		got := f.Forecast(Compute(f))
		if got.PerMinute > 10 {
			t.Errorf("%s: %v calls per minute", c.name, got.PerMinute)
		}
		if got.PerMinute = 0; got.At.Sub(c.want.At).Abs() > time.Second {
			t.Errorf("%s: ends at %v, want %v (%q)", c.name, got.At, c.want.At, got.Why)
		}
		if got.At = c.want.At; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// BenchmarkForecast measures a campaign in all states that takes weeks.
func BenchmarkForecast(b *testing.B) {
	us, err := market.Load("us")
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2027, 3, 2, 17, 0, 0, 0, time.UTC)
	f := Facts{
		Now: now, Opens: now, Route: true, Recent: Recent{Calls: 61, First: now.Add(-time.Hour), Last: now},
		Counts:   campaigns.Counts{ByState: map[campaigns.State]int{campaigns.Pending: 1_000_000}},
		Campaign: campaigns.Campaign{Status: campaigns.Running, Timezone: "America/New_York", Classification: market.Marketing, CallsPerMinute: 200},
	}
	for _, state := range []string{"AL", "AZ", "CA", "CO", "FL", "GA", "IL", "MA", "MI", "NC", "NJ", "NY", "OH", "OR", "PA", "TX", "VA", "WA", "WI", "WY"} {
		for _, zone := range []string{"America/New_York", "America/Chicago", "America/Denver"} {
			key := plan.Group{Location: market.Location{States: []string{state}, Zones: []string{zone}}}.Key()
			f.Waiting = append(f.Waiting, Group{Key: key, N: 16_000})
		}
	}
	for b.Loop() {
		planned, err := store.Organization{Zone: "America/New_York", Window: market.Always()}.Plan(f.Campaign, us)
		if err != nil {
			b.Fatal(err)
		}
		f.Calendar = plan.NewCalendar(planned, &plan.LawCache{})
		if x := f.Forecast(Compute(f)); !x.Later {
			b.Fatalf("%+v", x)
		}
	}
}
