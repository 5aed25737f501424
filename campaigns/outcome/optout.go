package outcome

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
	controlstore "github.com/parley-voice/parley/control/store"
)

// An OptOutRecorder implements control.OptOutStore.
type OptOutRecorder struct {
	Pool  *pgxpool.Pool
	Store *store.Store
}

// optOutSQL records an opt-out. It commits synchronously, whatever the database's default, because the callee relies
// on the opt-out.
const optOutSQL = `
WITH sure AS (SELECT set_config('synchronous_commit', 'on', true)),
kept AS (INSERT INTO opt_outs (org_id, number, call_id, campaign_id, contact_id, source, said, asked_at)
	SELECT $1, $2, $3, c.campaign_id, c.contact_id, $4, $5, $6 FROM sure LEFT JOIN calls c ON c.id = $3
	ON CONFLICT (call_id, source) DO NOTHING)
INSERT INTO suppressions (org_id, number) VALUES ($1, $2) ON CONFLICT DO NOTHING`

// endOthersSQL ends the organization's other calls to the number whose phone may ring. It locks the attempts that are about
// to be dialed: an intent that did not see the opt-out is committed first, and its call ends; a later one sees the opt-out.
const endOthersSQL = `
WITH theirs AS MATERIALIZED (
	SELECT a.call_id, a.state FROM calls c JOIN attempts a ON a.call_id = c.id
	WHERE c.org_id = $1 AND c.to_number = ANY ($2) AND c.created_at > clock_timestamp() - interval '1 day' AND c.id <> $3
		AND a.leg = 'callee' AND a.state IN ('claimed', 'intent', 'sent', 'ringing')
	ORDER BY a.id FOR UPDATE OF a
), ended AS (
	UPDATE calls c SET end_requested_at = coalesce(c.end_requested_at, clock_timestamp())
	FROM theirs WHERE c.id = theirs.call_id AND theirs.state <> 'claimed' RETURNING c.id
)
SELECT pg_notify('` + controlstore.ChannelEnds + `', '') FROM ended LIMIT 1`

// OptOut puts the number on the organization's list, ends other calls of the organization that ring the phone, and
// suppresses the number's waiting contacts in all live campaigns. A contact in a call is suppressed when the call ends.
func (r *OptOutRecorder) OptOut(ctx context.Context, o control.OptOut) error {
	err := db.Tx(ctx, r.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, optOutSQL, o.OrgID, o.Number, o.CallID, o.Source, o.Words, o.At.UTC()); err != nil {
			return err
		}
		same := phonenumber.ListedForms(o.Number)
		if _, err := tx.Exec(ctx, endOthersSQL, o.OrgID, same, o.CallID); err != nil {
			return err
		}
		affected, err := r.Store.Contacts.OptOut(ctx, tx, o.OrgID, same)
		if err != nil {
			return err
		}
		for _, l := range affected {
			c, err := r.Store.Get(ctx, tx, o.OrgID, l.CampaignID, false)
			if err == nil {
				err = r.Store.AddLog(ctx, tx, c, store.LogEntry{Action: store.OptedOut, Via: campaigns.BySystem, Detail: o.CallID, At: l.At})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("opt-out in call %s: %w", o.CallID, err)
	}
	return nil
}

// An OptOutFollower records opt-outs that the analysis of a call found. It also handles calls without a campaign.
type OptOutFollower struct {
	Recorder control.OptOutStore
	Calls    Calls
}

// HandleEvent implements control.EventHandler.
func (o *OptOutFollower) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded {
		return nil
	}
	c, err := o.Calls.Call(ctx, "", e.CallID)
	if err != nil || len(c.Analysis) == 0 || c.To == "" {
		return err
	}
	var analysis struct {
		OptOut *bool `json:"opt_out"`
	}
	if err = json.Unmarshal(c.Analysis, &analysis); err != nil {
		return fmt.Errorf("analysis of call %s: %w", c.ID, err)
	}
	if analysis.OptOut == nil || !*analysis.OptOut {
		return nil
	}
	return o.Recorder.OptOut(ctx, control.OptOut{OrgID: c.OrgID, Number: c.To, CallID: c.ID, Source: control.OptOutAnalysis, At: e.At})
}
