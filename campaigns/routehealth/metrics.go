package routehealth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/store"
)

// Limits of the metrics.
const (
	measureEvery = 15 * time.Second
	// measureShare is the shortest pause after a measurement, in multiples of the measurement's duration.
	measureShare = 20
	// maxMeasured bounds the campaigns with metrics, because each campaign has its own time series.
	maxMeasured = 500
)

// measure updates the metrics until ctx ends, while this node holds the duty.
func (m *Monitor) measure(ctx context.Context) {
	timer := time.NewTimer(measureEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		m.warn(ctx, "failed to measure campaigns", m.Measure(ctx))
		if m.hasDuty.Load() {
			m.warn(ctx, "failed to delete old reports of nodes", m.deleteReports(ctx))
		}
		timer.Reset(max(measureEvery, measureShare*time.Since(began)))
	}
}

// runningSQL returns the running campaigns. For each it returns when the campaign dialed last, the database's time,
// and whether the campaign's route has a free channel.
const runningSQL = `
SELECT c.org_id, c.id, nullif(p.last_at, '-infinity'), clock_timestamp(), ` + store.HasFreeChannel + `
` + store.FromRoutes + ` JOIN campaigns c ON c.route_id = s.id JOIN campaign_paces p ON p.campaign_id = c.id
WHERE c.status = 'running' ORDER BY c.id`

// A runningCampaign is a row of runningSQL.
type runningCampaign struct {
	org, id   string
	last, now time.Time
	free      bool
}

// Measure updates the metrics of running campaigns if this node holds the duty. If one campaign fails, it still
// measures the others, and returns the first error.
func (m *Monitor) Measure(ctx context.Context) error {
	if !m.hasDuty.Load() {
		m.setMetrics(metrics.Campaigns{})
		m.idle = nil
		return nil
	}
	all, err := db.Collect(ctx, m.Pool, "campaigns", func(row pgx.CollectableRow) (r runningCampaign, err error) {
		var last *time.Time
		err = row.Scan(&r.org, &r.id, &last, &r.now, &r.free)
		r.last = timeOrZero(last)
		return r, err
	}, runningSQL)
	if err != nil {
		return err
	}
	f := metrics.Campaigns{Running: len(all)}
	idle := map[string]time.Time{}
	var first error
	for _, r := range all[:min(len(all), maxMeasured)] {
		p, err := m.Progress(ctx, r.org, r.id)
		if err != nil { // measure the other campaigns, then return the first error
			if first == nil {
				first = fmt.Errorf("campaign %s: %w", r.id, err)
			}
			if before, ok := m.idle[r.id]; ok {
				idle[r.id] = before
			}
			continue
		}
		since := idleSince(m.idle[r.id], r, p)
		if !since.IsZero() {
			idle[r.id] = since
		}
		x := metrics.Campaign{
			ID: r.id, Asked: p.Pace.CallsPerMinute, Dialed: p.Pace.Dialed, InFlight: p.Pace.InFlight, Ready: p.Ready, Held: p.HeldReasons,
			Idle: !since.IsZero() && r.now.Sub(since) >= m.IdleAfter,
		}
		if b := p.Budget; b != nil {
			left := float64(b.Left) / 1e9
			x.BudgetLeft = &left
		}
		f.All = append(f.All, x)
	}
	m.idle = idle
	m.setMetrics(f)
	return first
}

// idleSince returns since when a campaign could dial but does not; zero if it cannot dial or does dial. before is the
// previous result of idleSince for the campaign.
func idleSince(before time.Time, r runningCampaign, p progress.Progress) time.Time {
	switch {
	case p.Ready == 0 || !r.free || slices.Contains(p.Pace.LimitedBy, control.CodeCampaignBudget):
		return time.Time{}
	case before.IsZero() || r.last.After(before):
		return r.now
	default:
		return before
	}
}

func (m *Monitor) setMetrics(f metrics.Campaigns) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics = f
}

func (m *Monitor) setStates(states map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = states
}

// Metrics returns the metrics of campaigns and routes; empty if another node holds the
// duty.
func (m *Monitor) Metrics() metrics.Campaigns {
	if !m.hasDuty.Load() {
		return metrics.Campaigns{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.metrics
	f.Active, f.Routes = true, m.states
	return f
}
