// Package routehealth monitors running campaigns: it runs the circuit breakers of their routes
// (control/circuitbreaker) and measures their progress. One node at a time holds this duty and does the work for all
// nodes. Each node reports the trunks that it cannot reach.
package routehealth

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/trunks"
)

// A Monitor runs the breakers of routes and measures campaigns.
type Monitor struct {
	Pool  *pgxpool.Pool
	Rules circuitbreaker.Rules
	Owner string // name of this node
	// Down reports that no proxy of a trunk accepts calls, as far as this node sees.
	Down func(trunks.Trunk) bool
	// CanTalk reports whether this node can talk as a version of an agent now; nil
	// disables the report.
	CanTalk func(ctx context.Context, agentID string, version int) (bool, error)
	// Paused returns, by trunk ID, the time until which the carrier asked this node to pause; nil means none.
	Paused func() map[string]time.Time
	// Progress returns the progress of a campaign. A campaign is reported as idle if it could dial but has not dialed
	// for IdleAfter.
	Progress  func(ctx context.Context, orgID, id string) (progress.Progress, error)
	IdleAfter time.Duration
	Log       *slog.Logger

	hasDuty atomic.Bool          // this node had the duty at the last step
	busy    bool                 // the last step had routes or campaigns to check; only Step uses it
	idle    map[string]time.Time // by campaign ID, since when the campaign could dial but does not

	unavailable    map[agent]bool // agents that this node last reported as unavailable
	agentsReported time.Time

	mu      sync.Mutex
	down    map[string]bool   // IDs of the trunks that this node cannot reach
	metrics metrics.Campaigns // result of the last measurement
	states  map[string]string // states of the routes' breakers at the last step
}

const (
	stepEvery   = time.Second     // time between two steps
	reportEvery = 5 * time.Second // time between two reports of this node
	reportLasts = 15 * time.Second
	dutyLasts   = 5 * time.Second // how long the duty lasts after the last step of a node that stopped
)

// Run calls ReportTrunks, ReportAgents, Step and Measure periodically until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	var others sync.WaitGroup
	others.Go(func() { m.measure(ctx) })
	defer others.Wait()
	steps := time.NewTicker(stepEvery)
	defer steps.Stop()
	var reported time.Time
	var before map[string]bool
	for {
		select {
		case <-ctx.Done():
			m.release(context.WithoutCancel(ctx))
			return
		case <-steps.C:
		}
		if paused := m.pausedNow(); time.Since(reported) >= reportEvery || !maps.Equal(paused, before) {
			reported, before = time.Now(), paused
			m.warn(ctx, "failed to store which trunks this node must not use", m.ReportTrunks(ctx))
		}
		m.warn(ctx, "failed to store which agents this node can run", m.ReportAgents(ctx))
		_, err := m.Step(ctx)
		m.warn(ctx, "failed to check routes", err)
	}
}

func (m *Monitor) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil && m.Log != nil {
		m.Log.WarnContext(ctx, what, "err", err)
	}
}

// Unreachable reports whether this node cannot reach a trunk. Other nodes may reach it.
func (m *Monitor) Unreachable(trunkID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down[trunkID]
}

func (m *Monitor) pausedNow() map[string]bool {
	now := map[string]bool{}
	if m.Paused != nil {
		for id := range m.Paused() {
			now[id] = true
		}
	}
	return now
}

// ReportTrunks stores which trunks this node cannot reach, and which it must pause. It covers the trunks of running
// campaigns and those that are paused for any node.
func (m *Monitor) ReportTrunks(ctx context.Context) error {
	paused := map[string]time.Time{}
	if m.Paused != nil {
		maps.Copy(paused, m.Paused())
	}
	used, err := db.Collect(ctx, m.Pool, "campaigns", pgx.RowTo[string], `
		SELECT trunk_id FROM campaigns WHERE status = 'running' UNION SELECT trunk_id FROM trunk_sights WHERE paused_until > clock_timestamp()
		UNION SELECT unnest($1::text[])`, slices.Collect(maps.Keys(paused)))
	if err != nil {
		return err
	}
	var all []trunks.Trunk
	if len(used) > 0 {
		if all, err = trunks.All(ctx, m.Pool); err != nil {
			return err
		}
	}
	in := map[string]bool{}
	for _, id := range used {
		in[id] = true
	}
	down := map[string]bool{}
	var ids []string
	var bad []bool
	var pauses []time.Duration // durations instead of times, because the clocks of node and database may differ
	for _, t := range all {
		if in[t.ID] {
			until, asked := paused[t.ID]
			down[t.ID] = !asked && m.Down != nil && m.Down(t)
			ids, bad, pauses = append(ids, t.ID), append(bad, down[t.ID]), append(pauses, max(time.Until(until), 0))
		}
	}
	m.mu.Lock()
	m.down = down
	m.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	_, err = db.Exec(ctx, m.Pool, "trunks", `
		INSERT INTO trunk_sights (trunk_id, node, down, paused_until, at)
		SELECT x.id, $1, x.down, clock_timestamp() + x.pause, clock_timestamp()
		FROM unnest($2::text[], $3::boolean[], $4::interval[]) AS x (id, down, pause) JOIN trunks t ON t.id = x.id ORDER BY x.id
		ON CONFLICT (trunk_id, node) DO UPDATE SET down = excluded.down, paused_until = excluded.paused_until, at = excluded.at`, m.Owner, ids, bad, pauses)
	return err
}

// dutySQL takes or keeps the duty for this node. It returns the database's time, and whether there is a running campaign, a
// route with an open breaker, or a campaign with a probe. It returns no row if another node holds the duty. It locks the duty
// until the transaction ends.
const dutySQL = `
INSERT INTO duties AS d (name, owner, until) VALUES ('routes', $1, clock_timestamp() + $2::interval)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE d.owner = excluded.owner OR d.until < clock_timestamp()
RETURNING clock_timestamp(), EXISTS (SELECT FROM campaigns WHERE status = 'running') OR EXISTS (SELECT FROM route_breakers WHERE open)
	OR EXISTS (SELECT FROM campaign_breakers WHERE open AND probe_call <> '')`

// A duty is a row of dutySQL.
type duty struct {
	now  time.Time
	work bool // a step has routes or campaigns to check
}

// takeDuty takes or keeps the duty for this node. It returns nil if another node holds the duty.
func (m *Monitor) takeDuty(ctx context.Context, q db.Querier) (*duty, error) {
	var d *duty
	var x duty
	err := db.Each(ctx, q, "duty", []any{&x.now, &x.work}, func() error { d = &x; return nil }, dutySQL, m.Owner, dutyLasts)
	return d, err
}

// Step advances the breakers of all routes and campaigns if this node holds the duty. It reports whether this node
// holds the duty. If neither this step nor the last has anything to check (see dutySQL), it is one statement. Only one
// goroutine may call Step.
func (m *Monitor) Step(ctx context.Context) (mine bool, err error) {
	var d *duty
	if !m.busy {
		if d, err = m.takeDuty(ctx, m.Pool); d != nil && !d.work {
			m.setStates(map[string]string{})
		}
	}
	if err == nil && (m.busy || d != nil && d.work) {
		d, err = m.advance(ctx)
	}
	m.busy = err == nil && d != nil && d.work
	if m.hasDuty.Store(d != nil && err == nil); !m.hasDuty.Load() {
		m.setStates(nil)
	}
	if err != nil {
		return false, fmt.Errorf("routes: %w", err)
	}
	return d != nil, nil
}

// advance advances all breakers, in a transaction that holds the duty. It returns nil if another node holds the duty.
func (m *Monitor) advance(ctx context.Context) (d *duty, err error) {
	err = db.Tx(ctx, m.Pool, func(tx pgx.Tx) (fault error) {
		if d, fault = m.takeDuty(ctx, tx); fault != nil || d == nil {
			return fault
		}
		if fault = m.stepCampaigns(ctx, tx, d.now); fault != nil {
			return fault
		}
		return m.stepRoutes(ctx, tx, d.now)
	})
	return d, err
}

// deleteReports deletes the reports of nodes that stopped. Readers ignore them much earlier.
func (m *Monitor) deleteReports(ctx context.Context) error {
	batch := &pgx.Batch{}
	batch.Queue("DELETE FROM trunk_sights WHERE at < clock_timestamp() - interval '1 minute'")
	batch.Queue("DELETE FROM agent_sights WHERE at < clock_timestamp() - interval '1 minute'")
	return m.Pool.SendBatch(ctx, batch).Close()
}

// release releases the duty and deletes this node's reports.
func (m *Monitor) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue("DELETE FROM duties WHERE name = 'routes' AND owner = $1", m.Owner)
	batch.Queue("DELETE FROM trunk_sights WHERE node = $1", m.Owner)
	batch.Queue("DELETE FROM agent_sights WHERE node = $1", m.Owner)
	_ = m.Pool.SendBatch(ctx, batch).Close() // after an error both expire by themselves
}
