package book

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
)

// wider is the group of a contact by the rules that hold now, and whether it is
// another than by those of its list: its number may be in more places.
func (d detail) wider(c candidate) (plan.Group, bool) {
	g, err := plan.ParseGroup(c.group)
	if err != nil {
		return g, false // nobody of it is called
	}
	where, err := d.market.Locate(market.Number{E164: c.number}, "", "")
	if err != nil {
		return g, false // of no state or zone that was named: there is none
	}
	g = g.Wider(where)
	return g, g.Key() != c.group
}

// move puts a contact into another group, in which it waits from the next look on.
func (b *Book) move(ctx context.Context, tx pgx.Tx, id, from string, to plan.Group) error {
	tag, err := tx.Exec(ctx, `
		UPDATE contacts SET hours_group = $3, states = $4, zones = $5
		WHERE id = (SELECT id FROM contacts WHERE id = $1 AND hours_group = $2 AND state = 'pending' FOR UPDATE SKIP LOCKED)`,
		id, from, to.Key(), to.Place.States, to.Place.Zones)
	if err != nil {
		return fmt.Errorf("contact %s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return errElsewhere
	}
	return nil
}
