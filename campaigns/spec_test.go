package campaigns

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
)

func now() time.Time { return time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC) }

// newFacts returns the facts of an organization in New York with one subgroup.
func newFacts(tb testing.TB) Facts {
	tb.Helper()
	us, err := market.Load("us")
	if err != nil {
		tb.Fatal(err)
	}
	var window market.Week
	for i := range window {
		window[i] = market.Hours{From: 9 * 60, To: 21 * 60}
	}
	return Facts{
		Now: now(), Agent: "agt_1", Zone: "America/New_York", Window: window, Market: us, MaxRows: 5,
		Routes: []admission.Trunk{{ID: "trk_1", Subgroups: []admission.Subgroup{{ID: "rte_1", CallerNumbers: []string{"+12025550100", "+12025550101"}}}}},
	}
}

func validSpec() Spec { return Spec{Name: " Spring ", Agent: "sales", CallsPerMinute: 20} }

func TestBuild(t *testing.T) {
	c, err := validSpec().Build(newFacts(t))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "Spring" || c.Timezone != "America/New_York" || c.TimezoneSource != "organization" || c.Status != Draft ||
		c.Binding != (Binding{"trk_1", "rte_1", "+12025550100"}) || c.ConsentTier() != "pewc" || c.DNC != Block ||
		c.Duplicates != contactfile.RejectDuplicates || c.Retry.Attempts != 1 || c.WorkingHours == nil || c.Market != "us" {
		t.Errorf("%+v", c)
	}
	if c.LaunchStatus(now()) != Running {
		t.Error("a campaign without a start does not run at once")
	}
	c.StartsAt = now().Add(time.Second)
	if c.LaunchStatus(now()) != Scheduled {
		t.Error("a campaign that starts later is not scheduled")
	}
}

// TestBuildErrors checks the code of each refusal. If several apply, Build returns the first in the API contract's
// order.
func TestBuildErrors(t *testing.T) {
	hours := func(days string, start, end string) []Shift {
		s := Shift{Start: start, End: end}
		if err := json.Unmarshal([]byte(days), &s.Days); err != nil {
			t.Fatal(err)
		}
		return []Shift{s}
	}
	for _, c := range []struct {
		name   string
		change func(*Spec, *Facts)
		want   control.Code
	}{
		{"ends before it starts", func(s *Spec, _ *Facts) { s.StartsAt, s.EndsAt = now(), now() }, control.CodeCampaignWindow},
		{"ends in the past, starts now", func(s *Spec, _ *Facts) { s.EndsAt = now().Add(-time.Hour) }, ""},
		{"open without an end", func(s *Spec, _ *Facts) { s.Open = true }, control.CodeOpenEndRequired},
		{"open to the horizon", func(s *Spec, _ *Facts) { s.Open, s.EndsAt = true, now().Add(Horizon) }, ""},
		{"open for too long", func(s *Spec, _ *Facts) { s.Open, s.EndsAt = true, now().Add(Horizon+time.Second) }, control.CodeOpenEndTooFar},
		{"no agent", func(s *Spec, w *Facts) { w.Agent = ""; s.Timezone = "Mars/Base" }, control.CodeCampaignAgentUnknown},
		{"no agent, incomplete binding", func(s *Spec, w *Facts) { w.Agent = ""; s.RouteID = "rte_1" }, control.CodeCampaignAgentUnknown},
		{"an unknown zone", func(s *Spec, _ *Facts) { s.Timezone = "Etc/GMT-5" }, control.CodeCampaignTimezone},
		{"a blank zone", func(s *Spec, _ *Facts) { s.Timezone = " " }, ""},
		{"a route without its trunk", func(s *Spec, _ *Facts) { s.RouteID = "rte_1" }, control.CodeBindingIncomplete},
		{"a number without its trunk", func(s *Spec, w *Facts) { s.From, w.Routes = "+12025550100", nil }, control.CodeBindingIncomplete},
		{"no route", func(_ *Spec, w *Facts) { w.Routes = nil }, control.CodeRouteUnresolved},
		{"another trunk", func(s *Spec, _ *Facts) { s.TrunkID = "trk_2" }, control.CodeRouteUnresolved},
		{"another number", func(s *Spec, _ *Facts) { s.TrunkID, s.From = "trk_1", "+12025550199" }, control.CodeRouteUnresolved},
		{"its second number", func(s *Spec, _ *Facts) { s.TrunkID, s.From = "trk_1", "12025550101" }, ""},
		{"two routes", func(_ *Spec, w *Facts) {
			w.Routes[0].Subgroups = append(w.Routes[0].Subgroups, admission.Subgroup{ID: "rte_2", CallerNumbers: []string{"+1"}})
		}, control.CodeRouteAmbiguous},
		{"wide hours", func(s *Spec, _ *Facts) { s.WorkingHours = hours("[0]", "07:00", "22:00") }, control.CodeHoursWider},
		{"narrow hours", func(s *Spec, _ *Facts) { s.WorkingHours = hours("[0,4]", "10:00", "17:00") }, ""},
		{"a wide row and a broken one", func(s *Spec, _ *Facts) {
			s.WorkingHours = append(hours("[0]", "9", "17:00"), hours("[6]", "07:00", "10:00")...)
		}, control.CodeHoursWider},
		{"all in Rhode Island, Sunday", func(s *Spec, w *Facts) {
			w.Locations, s.WorkingHours = []market.Location{{States: []string{"RI"}}}, hours("[6]", "12:00", "13:00")
		}, control.CodeHoursWider},
		{"no market, the organization's window", func(s *Spec, w *Facts) { w.Market, s.WorkingHours = nil, hours("[0]", "08:30", "12:00") }, control.CodeHoursWider},
		{"a broken row", func(s *Spec, _ *Facts) { s.WorkingHours = hours("[0]", "17:00", "09:00") }, control.CodeCampaignSpec},
		{"a row without days", func(s *Spec, _ *Facts) { s.WorkingHours = hours("[]", "10:00", "11:00") }, control.CodeCampaignSpec},
		{"an invalid day", func(s *Spec, _ *Facts) { s.WorkingHours = hours("[7]", "10:00", "11:00") }, control.CodeCampaignSpec},
		{"no name", func(s *Spec, _ *Facts) { s.Name = "  " }, control.CodeCampaignSpec},
		{"80 characters", func(s *Spec, _ *Facts) { s.Name = strings.Repeat("ы", 80) + " " }, ""},
		{"81 characters", func(s *Spec, _ *Facts) { s.Name = strings.Repeat("ы", 81) }, control.CodeCampaignSpec},
		{"an invalid pace", func(s *Spec, _ *Facts) { s.CallsPerMinute = 3 }, control.CodeCampaignSpec},
		{"retries", func(s *Spec, _ *Facts) { s.Retry = json.RawMessage(`{"attempts":0}`) }, control.CodeCampaignSpec},
		{"a strategy", func(s *Spec, _ *Facts) { s.Strategy = "clever" }, control.CodeCampaignSpec},
		{"duplicates", func(s *Spec, _ *Facts) { s.Duplicates = "keep" }, control.CodeCampaignSpec},
		{"rows", func(s *Spec, _ *Facts) { s.Rows = 6 }, control.CodeCampaignSpec},
		{"classification", func(s *Spec, _ *Facts) { s.Classification = "fun" }, control.CodeCampaignClassification},
		{"classification and wide hours", func(s *Spec, _ *Facts) {
			s.Classification, s.WorkingHours = "fun", hours("[0]", "07:00", "22:00")
		}, control.CodeHoursWider},
		{"name and classification", func(s *Spec, _ *Facts) { s.Name, s.Classification = "", "fun" }, control.CodeCampaignSpec},
	} {
		s, w := validSpec(), newFacts(t)
		c.change(&s, &w)
		_, err := s.Build(w)
		var got control.Code
		if err != nil {
			got = control.CodeOf(err)
		}
		if got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.name, got, err, c.want)
		}
	}
	for _, d := range []string{"", Block, Skip} {
		if CheckDNC(d) != nil {
			t.Errorf("dnc %q is refused", d)
		}
	}
	if control.CodeOf(CheckDNC("maybe")) != control.CodeDNCDecision {
		t.Error("no error for dnc maybe")
	}
}

func TestEffectOf(t *testing.T) {
	for s, want := range map[Status][5]Effect{
		Draft:     {IfChecksPass, Impossible, Impossible, Applies, Applies},
		Scheduled: {NoChange, Impossible, Impossible, Applies, Applies},
		Running:   {NoChange, Applies, NoChange, Applies, Applies},
		Paused:    {Impossible, NoChange, IfChecksPass, Applies, Applies},
		Completed: {},
		Canceled:  {Launch: Impossible, Cancel: NoChange},
	} {
		for a, m := range want {
			if got := EffectOf(s, Action(a)); got != m {
				t.Errorf("%s, action %d: %d, want %d", s, a, got, m)
			}
		}
		if s.IsOver() != (s == Completed || s == Canceled) {
			t.Errorf("%s is over: %v", s, s.IsOver())
		}
	}
}

func TestHoursOn(t *testing.T) {
	c := Campaign{}
	if h := c.HoursOn(6); len(h) != 1 || h[0].IsEmpty() {
		t.Errorf("no working hours: %v", h)
	}
	c.WorkingHours = []Shift{{Days: []int{0, 1}, Start: "09:00", End: "12:00"}, {Days: []int{0}, Start: "13:00", End: "17:00"}}
	if len(c.HoursOn(0)) != 2 || len(c.HoursOn(1)) != 1 || len(c.HoursOn(2)) != 0 {
		t.Errorf("%v %v %v", c.HoursOn(0), c.HoursOn(1), c.HoursOn(2))
	}
}
