package trunks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// levels of attestation (RFC 8588 section 4), the surest first.
var levels = []string{"A", "B", "C"} //nolint:gochecknoglobals // read-only table

// A shown number is one that calls through a trunk may show.
type shown struct{ TrunkID, Number string }

// allShown returns the caller numbers of all trunks and their subgroups.
func allShown(ctx context.Context, q db.Querier) ([]shown, error) {
	rows, err := q.Query(ctx, `
		SELECT id, unnest(caller_numbers) FROM trunks
		UNION SELECT trunk_id, unnest(caller_numbers) FROM subgroups`)
	if err != nil {
		return nil, fmt.Errorf("caller numbers: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[shown])
	if err != nil {
		return nil, fmt.Errorf("caller numbers: %w", err)
	}
	return all, nil
}

// attest is the level of each caller number that has one, by its digits. A
// signature does not say which trunk a call went through, so the least sure
// trunk that may show a number decides.
func attest(all []Trunk, shows []shown) map[string]string {
	said := map[shown]string{}
	for _, t := range all {
		for n, level := range t.Settings.Attest {
			said[shown{t.ID, control.Digits(n)}] = level
		}
	}
	least := map[string]string{}
	for _, s := range shows {
		s.Number = control.Digits(s.Number)
		level, before := said[s], least[s.Number]
		_, seen := least[s.Number]
		if !seen || level == "" || before != "" && level > before {
			least[s.Number] = level
		}
	}
	return least
}
