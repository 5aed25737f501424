package routehealth

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/db"
)

// An agent identifies one version of an agent.
type agent struct {
	ID      string
	Version int
}

// ReportAgents stores which agents of running campaigns this node cannot run. It stores changes at once, and all of
// these agents periodically.
func (m *Monitor) ReportAgents(ctx context.Context) error {
	if m.CanTalk == nil {
		return nil
	}
	used, err := db.Collect(ctx, m.Pool, "campaigns", pgx.RowToStructByPos[agent],
		"SELECT DISTINCT agent_id, agent_version FROM campaigns WHERE status = 'running'")
	if err != nil {
		return err
	}
	down := map[agent]bool{}
	for _, a := range used {
		able, fault := m.CanTalk(ctx, a.ID, a.Version)
		if fault != nil {
			err = fault // the other agents are still reported
			continue
		}
		down[a] = !able
	}
	if maps.Equal(down, m.unavailable) && time.Since(m.agentsReported) < reportEvery {
		return err
	}
	if fault := m.saveAgents(ctx, down); fault != nil {
		return fault
	}
	m.unavailable, m.agentsReported = down, time.Now()
	return err
}

func (m *Monitor) saveAgents(ctx context.Context, down map[agent]bool) error {
	if len(down) == 0 {
		return nil
	}
	var ids []string
	var versions []int
	var bad []bool
	for a, isDown := range down {
		ids, versions, bad = append(ids, a.ID), append(versions, a.Version), append(bad, isDown)
	}
	_, err := db.Exec(ctx, m.Pool, "agents", `
		INSERT INTO agent_sights (agent_id, version, node, down, at)
		SELECT x.id, x.version, $1, x.down, clock_timestamp() FROM unnest($2::text[], $3::int[], $4::boolean[]) AS x (id, version, down)
		JOIN agents a ON a.id = x.id ORDER BY x.id, x.version
		ON CONFLICT (agent_id, version, node) DO UPDATE SET down = excluded.down, at = excluded.at`, m.Owner, ids, versions, bad)
	return err
}

// probePassesAfter is the time from the answer of a campaign's probe call until the probe passes.
const probePassesAfter = 10 * time.Second

// stepCampaigns advances the breakers of campaigns with the results of their probe calls.
func (m *Monitor) stepCampaigns(ctx context.Context, tx pgx.Tx, now time.Time) error {
	s := &store.Store{}
	all, err := s.Breakers.Probed(ctx, tx, probePassesAfter)
	if err != nil {
		return err
	}
	for _, h := range all {
		next := circuitbreaker.CampaignRules().Step(now, h.State, h.Seen)
		if next == h.State {
			continue
		}
		if err = s.Breakers.Save(ctx, tx, h, next); err != nil {
			return err
		}
		if !next.Open && m.Log != nil {
			m.Log.InfoContext(ctx, "campaign resumed calling: its calls no longer fail", "campaign", h.CampaignID)
		}
	}
	return nil
}
