package book

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A way is how it stands with the route of a campaign.
type way struct {
	open  bool // its breaker is: calls fail
	probe bool // one may try it all the same
}

// shut tells that nobody is to be called through a route now. A trunk that this
// node alone cannot reach is left to the others; where none reaches it, the
// breaker is open, and whoever comes first tries it.
func (w way) shut(b *Book, d detail) bool {
	if w.open {
		return !w.probe
	}
	return b.Unreachable != nil && b.Unreachable(d.campaign.Binding.TrunkID)
}

// probe has a call try a route whose breaker is open, unless another does.
func (b *Book) probe(ctx context.Context, tx pgx.Tx, d detail, callID string) error {
	tag, err := tx.Exec(ctx, `
		WITH way AS (
			UPDATE route_breakers SET probe_call = $2
			WHERE subgroup_id = $1 AND open AND probe_call = '' AND probe_at <= clock_timestamp() RETURNING probe_call
		)
		UPDATE contact_attempts x SET probe = true FROM way WHERE x.call_id = way.probe_call`, d.campaign.Binding.RouteID, callID)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errGone
	}
	return nil
}
