package routehealth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/metrics"
)

// TestIdleSince checks the time since when a campaign has been able to dial but has not dialed.
func TestIdleSince(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ready := progress.Progress{Ready: 3}
	for _, c := range []struct {
		name   string
		before time.Time
		r      runningCampaign
		p      progress.Progress
		want   time.Time
	}{
		{"no contact is ready", at.Add(-time.Hour), runningCampaign{now: at, free: true}, progress.Progress{Holds: 3}, time.Time{}},
		{"no channel is free", at.Add(-time.Hour), runningCampaign{now: at}, ready, time.Time{}},
		{"it can from now on", time.Time{}, runningCampaign{now: at, free: true, last: at.Add(-time.Hour)}, ready, at},
		{"it could for an hour", at.Add(-time.Hour), runningCampaign{now: at, free: true, last: at.Add(-2 * time.Hour)}, ready, at.Add(-time.Hour)},
		{"it never dialed", at.Add(-time.Hour), runningCampaign{now: at, free: true}, ready, at.Add(-time.Hour)},
		{"it dialed", at.Add(-time.Hour), runningCampaign{now: at, free: true, last: at.Add(-time.Minute)}, ready, at},
	} {
		if got := idleSince(c.before, c.r, c.p); !got.Equal(c.want) {
			t.Errorf("%s: since %v, want %v", c.name, got, c.want)
		}
	}
}

// TestMetrics checks that only the node with the duty shows the running campaigns.
func TestMetrics(t *testing.T) {
	r := newEnv(t)
	r.exec("INSERT INTO campaign_paces (campaign_id, last_at) VALUES ('cmp_1', now() - interval '10 minutes')")
	a, b := r.monitor("a"), r.monitor("b")
	p := progress.Progress{Ready: 2, HeldReasons: map[string]int{"retry_wait": 4}, Pace: progress.Pace{CallsPerMinute: 200, Dialed: 190, InFlight: 5}}
	for _, w := range []*Monitor{a, b} {
		w.IdleAfter = time.Minute
		w.Progress = func(_ context.Context, org, id string) (progress.Progress, error) {
			if org != "org_1" || id != "cmp_1" {
				t.Errorf("%s of %s", id, org)
			}
			return p, nil
		}
	}
	measure := func(w *Monitor) metrics.Campaigns {
		t.Helper()
		r.step(w)
		if err := w.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.Metrics()
	}
	f := measure(a)
	if !f.Active || f.Running != 1 || len(f.All) != 1 || f.Routes["rte_1"] != metrics.RouteClosed || len(f.Routes) != 1 {
		t.Fatalf("%+v", f)
	}
	if c := f.All[0]; c.ID != "cmp_1" || c.Asked != 200 || c.Dialed != 190 || c.InFlight != 5 || c.Ready != 2 || c.Held["retry_wait"] != 4 || c.Idle {
		t.Errorf("%+v", c)
	}
	if f = measure(b); f.Active || f.Running != 0 || f.All != nil || f.Routes != nil {
		t.Errorf("without the duty: %+v", f)
	}
	a.idle["cmp_1"] = a.idle["cmp_1"].Add(-2 * time.Minute)
	if f = measure(a); !f.All[0].Idle {
		t.Error("a campaign that could dial for two minutes is not idle")
	}
	if f.All[0].BudgetLeft != nil {
		t.Error("a campaign without a budget has a budget left")
	}
	unlimited := p
	p.Budget, p.Pace.LimitedBy = &progress.Budget{Left: 1_500_000_000}, []control.Code{control.CodeCampaignBudget}
	if f = measure(a); f.All[0].Idle || f.All[0].BudgetLeft == nil || *f.All[0].BudgetLeft != 1.5 {
		t.Errorf("a campaign without money left: %+v", f.All[0])
	}
	p = unlimited
	r.exec("UPDATE subgroups SET concurrent_calls = 0")
	if f = measure(a); f.All[0].Idle {
		t.Error("a campaign without a free channel is idle")
	}
	r.exec("UPDATE subgroups SET concurrent_calls = 10")
	r.exec("INSERT INTO route_breakers (subgroup_id, open, why, since, wait, probe_at) VALUES ('rte_1', true, 'failures', now(), '10s', now() + interval '10 seconds')")
	if f = measure(a); f.Routes["rte_1"] != metrics.RouteOpen {
		t.Errorf("routes: %v", f.Routes)
	}
	r.exec("UPDATE campaigns SET status = 'paused'")
	r.exec("DELETE FROM route_breakers")
	if f = measure(a); f.Running != 0 || len(f.All)+len(f.Routes) != 0 {
		t.Errorf("after the end of all campaigns: %+v", f)
	}
}

// TestMetricsWithFailingCampaign checks a campaign whose progress cannot be read. It has no metrics, does not affect
// other campaigns, and keeps its idle time.
func TestMetricsWithFailingCampaign(t *testing.T) {
	r := newEnv(t)
	r.exec(`INSERT INTO campaigns SELECT * FROM json_populate_record(NULL::campaigns, (SELECT (to_jsonb(c) || '{"id": "cmp_2"}')::json FROM campaigns c))`)
	r.exec("INSERT INTO campaign_paces (campaign_id) VALUES ('cmp_1'), ('cmp_2')")
	w, bad := r.monitor("a"), true
	w.Progress = func(_ context.Context, _, id string) (progress.Progress, error) {
		if id == "cmp_1" && bad {
			return progress.Progress{}, errors.New("file gone")
		}
		return progress.Progress{Ready: 1}, nil
	}
	r.step(w)
	if err := w.Measure(t.Context()); err == nil || !strings.Contains(err.Error(), "cmp_1: file gone") {
		t.Errorf("the error of the campaign is not returned: %v", err)
	}
	if f := w.Metrics(); f.Running != 2 || len(f.All) != 1 || f.All[0].ID != "cmp_2" {
		t.Errorf("%+v", f)
	}
	for _, bad = range []bool{false, true} {
		since := w.idle["cmp_1"]
		_ = w.Measure(t.Context())
		if now := w.idle["cmp_1"]; now.IsZero() || bad && !now.Equal(since) {
			t.Errorf("failing %v: idle since %v, before %v", bad, now, since)
		}
	}
}
