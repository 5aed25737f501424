package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control/db"
)

// A RejectedContact is suppressed because of the location of its number.
type RejectedContact struct {
	ID, Number string
	Location   market.Location
	Named      string     // zone that the contact's row names
	Group      plan.Group // set by the caller for Readmit
}

// GeoRejected returns and locks the contacts of a campaign that are suppressed as
// geo_rejected, and returns the destinations that its subgroup allows.
func (Contacts) GeoRejected(ctx context.Context, tx pgx.Tx, c campaigns.Campaign) (allowed []string, all []RejectedContact, err error) {
	err = tx.QueryRow(ctx, "SELECT coalesce((SELECT allowed_destinations FROM subgroups WHERE id = $1), '{}')", c.Binding.RouteID).
		Scan(&allowed)
	if err != nil {
		return nil, nil, fmt.Errorf("contacts: %w", err)
	}
	all, err = db.Collect(ctx, tx, "contacts", func(row pgx.CollectableRow) (x RejectedContact, err error) {
		return x, row.Scan(&x.ID, &x.Number, &x.Location.States, &x.Location.Zones, &x.Named)
	}, `
		SELECT id, number, states, zones, timezone FROM contacts
		WHERE campaign_id = $1 AND state = 'suppressed' AND reason = 'geo_rejected' ORDER BY id FOR UPDATE`, c.ID)
	return allowed, all, err
}

// Readmit makes contacts pending that GeoRejected returned.
func (Contacts) Readmit(ctx context.Context, tx pgx.Tx, all []RejectedContact, now time.Time) error {
	type row struct {
		ID     string   `json:"id"`
		States []string `json:"states"`
		Zones  []string `json:"zones"`
		Group  string   `json:"hours_group"`
	}
	next := make([]row, len(all))
	for i, x := range all {
		next[i] = row{x.ID, x.Group.Location.States, x.Group.Location.Zones, x.Group.Key()}
	}
	text, err := json.Marshal(next)
	if err == nil {
		_, err = tx.Exec(ctx, `
			UPDATE contacts k SET state = 'pending', reason = '', states = x.states, zones = x.zones, hours_group = x.hours_group,
				next_attempt_at = NULL, due_at = greatest(k.not_before, $2), updated_at = $2
			FROM json_to_recordset($1) AS x (id text, states text[], zones text[], hours_group text)
			WHERE k.id = x.id AND k.state = 'suppressed' AND k.reason = 'geo_rejected'`, text, now)
	}
	if err != nil {
		return fmt.Errorf("contacts: %w", err)
	}
	return nil
}
