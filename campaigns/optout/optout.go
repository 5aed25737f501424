// Package optout keeps who asked not to be called again: on the organization's list,
// and in all of its campaigns.
package optout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/spelling"
)

// A Desk implements control.OptOuts.
type Desk struct {
	Pool  *pgxpool.Pool
	Store *store.Store
}

// keepSQL writes down that somebody asked, for good: nothing is answered before it
// is on the disk, whatever the database does otherwise.
const keepSQL = `
WITH sure AS (SELECT set_config('synchronous_commit', 'on', true)),
kept AS (INSERT INTO opt_outs (org_id, number, call_id, campaign_id, contact_id, source, said, asked_at)
	SELECT $1, $2, $3, c.campaign_id, c.contact_id, $4, $5, $6 FROM sure LEFT JOIN calls c ON c.id = $3
	ON CONFLICT (call_id, source) DO NOTHING)
INSERT INTO suppressions (org_id, number) VALUES ($1, $2) ON CONFLICT DO NOTHING`

// OptOut keeps that somebody asked not to be called again. The number is on the
// organization's list, and no contact of it waits any more in a campaign that
// runs or may, once it returns. One that is being called goes when its call ends.
func (d *Desk) OptOut(ctx context.Context, o control.OptOut) error {
	err := db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, keepSQL, o.OrgID, o.Number, o.CallID, o.Source, o.Said, o.At.UTC()); err != nil {
			return err
		}
		lost, err := d.Store.OptOut(ctx, tx, o.OrgID, spelling.All(o.Number))
		if err != nil {
			return err
		}
		for _, l := range lost {
			c, err := d.Store.Get(ctx, tx, o.OrgID, l.CampaignID, false)
			if err == nil {
				err = d.Store.Log(ctx, tx, c, store.Entry{Action: store.OptedOut, Via: campaigns.BySystem, Detail: o.CallID, At: l.At})
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
