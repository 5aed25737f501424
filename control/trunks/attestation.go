package trunks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// levels are the attestation levels of RFC 8588 section 4, highest first.
var levels = []string{"A", "B", "C"} //nolint:gochecknoglobals // read-only table

// callerNumber is a caller number of a trunk or of one of its subgroups.
type callerNumber struct{ TrunkID, Number string }

func listCallerNumbers(ctx context.Context, q db.Querier) ([]callerNumber, error) {
	return db.Collect(ctx, q, "caller numbers", pgx.RowToStructByPos[callerNumber], `
		SELECT id, unnest(caller_numbers) FROM trunks
		UNION SELECT trunk_id, unnest(caller_numbers) FROM subgroups`)
}

// attestLevels returns the attestation level of each caller number. A signature does not name the call's trunk, so a
// number of several trunks gets the lowest of their levels.
func attestLevels(all []Trunk, shows []callerNumber) map[string]string {
	set := map[callerNumber]string{}
	for _, t := range all {
		for n, level := range t.Settings.Attest {
			set[callerNumber{t.ID, control.Digits(n)}] = level
		}
	}
	least := map[string]string{}
	for _, s := range shows {
		s.Number = control.Digits(s.Number)
		level, before := set[s], least[s.Number]
		_, seen := least[s.Number]
		if !seen || level == "" || before != "" && level > before {
			least[s.Number] = level
		}
	}
	return least
}
