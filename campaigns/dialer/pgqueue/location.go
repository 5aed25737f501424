package pgqueue

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
)

// relocate returns the group of a contact by the current market rules, and whether it
// differs from the stored one: the number may have more possible locations now.
func (d detail) relocate(c candidate) (plan.Group, bool) {
	g, err := plan.ParseGroup(c.group)
	if err != nil {
		return g, false // a group that cannot be read is not called
	}
	where, err := d.market.Locate(market.Number{E164: c.number}, "", "")
	if err != nil {
		return g, false // impossible, because no state and no zone is named
	}
	g = g.Widen(where)
	return g, g.Key() != c.group
}

func (q *Queue) setGroup(ctx context.Context, tx pgx.Tx, id, from string, to plan.Group) error {
	tag, err := tx.Exec(ctx, `
		UPDATE contacts SET hours_group = $3, states = $4, zones = $5
		WHERE id = (SELECT id FROM contacts WHERE id = $1 AND hours_group = $2 AND state = 'pending' FOR UPDATE SKIP LOCKED)`,
		id, from, to.Key(), to.Location.States, to.Location.Zones)
	if err != nil {
		return fmt.Errorf("contact %s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return errContactLocked
	}
	return nil
}
