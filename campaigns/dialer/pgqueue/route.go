package pgqueue

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A breakerState is the state of the breaker of a campaign or of its route.
type breakerState struct {
	open  bool // calls through the route fail
	probe bool // one call may probe the route now
}

// blocks reports whether no call may use the route now. A pause that the carrier asked for applies to probes, too. If
// only this node cannot reach the trunk, other nodes make the call. If no node reaches the trunk, the breaker is open
// and any node may probe.
func (s breakerState) blocks(q *Queue, d detail) bool {
	trunk := d.campaign.Binding.TrunkID
	if q.Paused != nil && q.Paused(trunk) {
		return true
	}
	if s.open {
		return !s.probe
	}
	return q.Unreachable != nil && q.Unreachable(trunk)
}

// probeRoute makes a call the probe of a route with an open breaker, unless another call is the probe already.
func (q *Queue) probeRoute(ctx context.Context, tx pgx.Tx, d detail, callID string) error {
	return requireRow(db.Exec(ctx, tx, "probe", `
		WITH breaker AS (
			UPDATE route_breakers SET probe_call = $2
			WHERE subgroup_id = $1 AND open AND probe_call = '' AND probe_at <= clock_timestamp() RETURNING probe_call
		)
		UPDATE contact_attempts x SET probe = true FROM breaker WHERE x.call_id = breaker.probe_call`, d.campaign.Binding.RouteID, callID))
}

// requireRow returns errCampaignChanged if a statement affected no row.
func requireRow(n int, err error) error {
	if err == nil && n == 0 {
		return errCampaignChanged
	}
	return err
}

// isHeld reports whether an open breaker stops a campaign. One probe at a time may pass, on a
// node whose providers were recently verified.
func (q *Queue) isHeld(ctx context.Context, d detail, s breakerState) (bool, error) {
	if !s.open {
		return false, nil
	}
	if !s.probe {
		return true, nil
	}
	verified, err := d.checkAgent(ctx, q.ProvidersVerified)
	return !verified, err
}

// markProbes makes a call the probe of the route, the campaign or both.
func (q *Queue) markProbes(ctx context.Context, tx pgx.Tx, d detail, n firstContact, callID string) error {
	if n.route.open {
		if err := q.probeRoute(ctx, tx, d, callID); err != nil {
			return err
		}
	}
	if n.campaign.open {
		return q.probeCampaign(ctx, tx, d.campaign.ID, callID)
	}
	return nil
}

// probeCampaign makes the call the probe of its campaign if the campaign's breaker is open, a
// probe is due and no call is the probe yet.
func (q *Queue) probeCampaign(ctx context.Context, tx pgx.Tx, campaignID, callID string) error {
	return requireRow(db.Exec(ctx, tx, "probe", `
		UPDATE campaign_breakers SET probe_call = $2
		WHERE campaign_id = $1 AND open AND probe_call = '' AND probe_at <= clock_timestamp()`, campaignID, callID))
}
