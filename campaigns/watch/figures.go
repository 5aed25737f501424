package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control/metrics"
)

// Bounds of the figures.
const (
	figuresEvery = 15 * time.Second
	// figuresShare is how much longer than they took it is until they are made anew.
	figuresShare = 20
	// figuresAtMost bounds the campaigns of which there are figures: each has series
	// of its own.
	figuresAtMost = 500
)

// measure makes the figures again and again, until ctx ends, while it is this
// node's duty.
func (w *Watch) measure(ctx context.Context) {
	timer := time.NewTimer(figuresEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		w.warn(ctx, "some campaigns were not measured", w.Measure(ctx))
		timer.Reset(max(figuresEvery, figuresShare*time.Since(began)))
	}
}

// freeSQL has the campaigns that run, when each dialled last, and whether there is
// a line for its next call.
const freeSQL = `
SELECT c.org_id, c.id, nullif(p.last_at, '-infinity'), clock_timestamp(),
	(SELECT count(*) FROM attempts x WHERE x.subgroup_id = s.id AND x.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered'))
		< least(s.concurrent_calls, nullif(g.concurrent_calls, 0))
	AND (t.concurrent_calls = 0 OR
		(SELECT count(*) FROM attempts x WHERE x.trunk_id = t.id AND x.state IN ('claimed', 'intent', 'sent', 'ringing', 'answered')) < t.concurrent_calls)
FROM campaigns c JOIN campaign_paces p ON p.campaign_id = c.id
JOIN subgroups s ON s.id = c.route_id JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
WHERE c.status = 'running' ORDER BY c.id`

// running is a campaign that runs.
type running struct {
	org, id   string
	last, now time.Time
	free      bool
}

// Measure makes the figures of the campaigns that run, if that is this node's duty. An
// error is of one that has none.
func (w *Watch) Measure(ctx context.Context) error {
	if !w.mine.Load() {
		w.keep(metrics.Campaigns{})
		w.idle = nil
		return nil
	}
	found, err := w.Pool.Query(ctx, freeSQL)
	if err != nil {
		return fmt.Errorf("campaigns: %w", err)
	}
	all, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (r running, err error) {
		var last *time.Time
		err = row.Scan(&r.org, &r.id, &last, &r.now, &r.free)
		r.last = or(last)
		return r, err
	})
	if err != nil {
		return fmt.Errorf("campaigns: %w", err)
	}
	f := metrics.Campaigns{Running: len(all)}
	idle := map[string]time.Time{}
	var first error // of the campaigns that were not measured
	for _, r := range all[:min(len(all), figuresAtMost)] {
		p, err := w.Progress(ctx, r.org, r.id)
		if err != nil { // the others go on
			if first == nil {
				first = fmt.Errorf("campaign %s: %w", r.id, err)
			}
			if before, ok := w.idle[r.id]; ok {
				idle[r.id] = before
			}
			continue
		}
		since := since(w.idle[r.id], r, p)
		if !since.IsZero() {
			idle[r.id] = since
		}
		f.All = append(f.All, metrics.Campaign{
			ID: r.id, Asked: p.Pace.CallsPerMinute, Dialled: p.Pace.Dialled, InFlight: p.Pace.InFlight, Ready: p.Ready, Held: p.HeldReasons,
			Idle: !since.IsZero() && r.now.Sub(since) >= w.IdleAfter,
		})
	}
	w.idle = idle
	w.keep(f)
	return first
}

// since is from when on a campaign could dial and did not, the zero time where it
// cannot or did; before is what it was.
func since(before time.Time, r running, p progress.Progress) time.Time {
	switch {
	case p.Ready == 0 || !r.free:
		return time.Time{}
	case before.IsZero() || r.last.After(before):
		return r.now
	default:
		return before
	}
}

// keep keeps figures until the next.
func (w *Watch) keep(f metrics.Campaigns) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.figures = f
}

// show keeps how the breakers of routes stand.
func (w *Watch) show(states map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = states
}

// Figures are how campaigns and routes get on. Where another server looks after
// them, there are none.
func (w *Watch) Figures() metrics.Campaigns {
	if !w.mine.Load() {
		return metrics.Campaigns{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.figures
	f.Looks, f.Routes = true, w.states
	return f
}
