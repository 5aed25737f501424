package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/db"
)

// A HeldCampaign is a campaign with an open breaker, and its probe.
type HeldCampaign struct {
	CampaignID string
	State      circuitbreaker.State
	Call       string
	Seen       circuitbreaker.Observation
}

// Check opens the breaker of a campaign if too many of its last calls broke because of Parley or a provider. It reports
// whether it opened the breaker.
func (Breakers) Check(ctx context.Context, tx pgx.Tx, campaignID string, r circuitbreaker.Rules, now time.Time) (bool, error) {
	h := HeldCampaign{CampaignID: campaignID}
	var since *time.Time
	batch := &pgx.Batch{}
	batch.Queue("INSERT INTO campaign_breakers (campaign_id) VALUES ($1) ON CONFLICT DO NOTHING", campaignID)
	batch.Queue("SELECT open, since FROM campaign_breakers WHERE campaign_id = $1 FOR UPDATE", campaignID).
		QueryRow(func(row pgx.Row) error { return row.Scan(&h.State.Open, &since) })
	// This statement sees everything that earlier holders of the lock committed.
	batch.Queue(`
		SELECT count(*) FILTER (WHERE fault = ''), count(*) FILTER (WHERE fault <> '') FROM (
			SELECT x.fault FROM contact_attempts x JOIN campaign_breakers b ON b.campaign_id = x.campaign_id
			WHERE x.campaign_id = $1 AND x.ended_at IS NOT NULL AND (b.since IS NULL OR x.ended_at > b.since)
			ORDER BY x.began_at DESC LIMIT $2) last`, campaignID, r.MaxCalls).
		QueryRow(func(row pgx.Row) error { return row.Scan(&h.Seen.Good, &h.Seen.Bad) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return false, fmt.Errorf("breaker of campaign %s: %w", campaignID, err)
	}
	if h.State.Open {
		return false, nil
	}
	if since != nil {
		h.State.Since = since.UTC()
	}
	next := r.Step(now, h.State, h.Seen)
	if !next.Open {
		return false, nil
	}
	return true, Breakers{}.Save(ctx, tx, h, next)
}

// Probed returns the campaigns with a probe, and the results of the probes. An answered probe passes after minTalk.
func (Breakers) Probed(ctx context.Context, q db.Querier, minTalk time.Duration) ([]HeldCampaign, error) {
	return db.Collect(ctx, q, "breakers of campaigns", func(row pgx.CollectableRow) (h HeldCampaign, err error) {
		var since, probeAt *time.Time
		var exists, lasts bool
		var fault, outcome string
		h.State.Open, h.State.Why = true, circuitbreaker.Failures
		err = row.Scan(&h.CampaignID, &since, &h.State.Wait, &probeAt, &h.Call, &exists, &fault, &outcome, &lasts)
		if since != nil {
			h.State.Since = since.UTC()
		}
		if probeAt != nil {
			h.State.ProbeAt = probeAt.UTC()
		}
		h.State.Probing, h.Seen.Probe = true, probeResult(exists, fault, outcome, lasts)
		return h, err
	}, `
		SELECT b.campaign_id, b.since, b.wait, b.probe_at, b.probe_call, x.call_id IS NOT NULL, coalesce(x.fault, ''), coalesce(x.outcome, ''),
			coalesce(c.answered_at < clock_timestamp() - $1::interval, false)
		FROM campaign_breakers b LEFT JOIN contact_attempts x ON x.call_id = b.probe_call LEFT JOIN calls c ON c.id = b.probe_call
		WHERE b.open AND b.probe_call <> '' ORDER BY b.campaign_id`, minTalk)
}

// probeResult returns the result of a probe. A call that was not answered says nothing about
// the agent.
func probeResult(exists bool, fault, outcome string, lasts bool) circuitbreaker.Probe {
	switch {
	case !exists:
		return circuitbreaker.Gone
	case fault != "":
		return circuitbreaker.Failed
	case outcome == "answered" || outcome == "short_call" || outcome == "voicemail" || outcome == "ivr" || outcome == "" && lasts:
		return circuitbreaker.Passed
	case outcome == "":
		return circuitbreaker.On
	default:
		return circuitbreaker.Gone
	}
}

// Save stores the next state of a breaker. It has no effect if another probe began since the state was read.
func (Breakers) Save(ctx context.Context, tx pgx.Tx, h HeldCampaign, next circuitbreaker.State) error {
	call := ""
	if next.Probing {
		call = h.Call
	}
	_, err := db.Exec(ctx, tx, "breaker of campaign "+h.CampaignID, `
		UPDATE campaign_breakers SET open = $2, since = $3, wait = $4, probe_at = $5, probe_call = $6
		WHERE campaign_id = $1 AND probe_call = $7`, h.CampaignID, next.Open, nullTime(next.Since), next.Wait, nullTime(next.ProbeAt), call, h.Call)
	return err
}

// CountFaulted counts the contacts without an attempt left whose last call broke because of
// Parley or a provider.
func (Contacts) CountFaulted(ctx context.Context, q db.Querier, campaignID string) (n int, err error) {
	if err = q.QueryRow(ctx, "SELECT count(*) FROM contacts WHERE campaign_id = $1 AND state = 'exhausted' AND fault <> ''",
		campaignID).Scan(&n); err != nil {
		return 0, fmt.Errorf("contacts: %w", err)
	}
	return n, nil
}

// Reopen sets the contacts of CountFaulted to pending, and returns how many. The broken call does not count as an
// attempt.
func (Contacts) Reopen(ctx context.Context, tx pgx.Tx, campaignID string, now time.Time) (int, error) {
	return db.Exec(ctx, tx, "contacts", `
		UPDATE contacts SET state = 'pending', fault = '', attempts = attempts - 1, next_attempt_at = NULL, due_at = $2, updated_at = $2
		WHERE id IN (SELECT id FROM contacts WHERE campaign_id = $1 AND state = 'exhausted' AND fault <> '' ORDER BY id FOR UPDATE)`, campaignID, now)
}
