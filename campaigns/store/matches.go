package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/control/db"
)

// SaveMatches stores the do-not-call list of each matching row.
func (Imports) SaveMatches(ctx context.Context, tx pgx.Tx, importID string, all []screening.Match) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"import_matches"}, []string{"import_id", "n", "registry"},
		pgx.CopyFromSlice(len(all), func(i int) ([]any, error) { return []any{importID, all[i].Row, all[i].Registry}, nil }))
	if err != nil {
		return fmt.Errorf("matches: %w", err)
	}
	return nil
}

// Matches returns the do-not-call lists of rows, by row.
func (Imports) Matches(ctx context.Context, q db.Querier, importID string) (map[int]string, error) {
	all := map[int]string{}
	var n int
	var registry string
	return all, db.Each(ctx, q, "matches", []any{&n, &registry}, func() error {
		all[n] = registry
		return nil
	}, "SELECT n, registry FROM import_matches WHERE import_id = $1", importID)
}

// FirstAuditID returns the ID of an import's first audit record, 0 for none.
func (Imports) FirstAuditID(ctx context.Context, q db.Querier, importID string) (id int64, err error) {
	if err = q.QueryRow(ctx, "SELECT coalesce(min(id), 0) FROM dnc_audit WHERE import_id = $1", importID).Scan(&id); err != nil {
		return 0, fmt.Errorf("audit: %w", err)
	}
	return id, nil
}

// VariableNames returns the variable names of an import's rows, sorted. If there are more than most, it omits the rest.
func (Imports) VariableNames(ctx context.Context, q db.Querier, importID string, most int) ([]string, error) {
	return db.Collect(ctx, q, "variables", pgx.RowTo[string], `
		SELECT DISTINCT v.key COLLATE "C" FROM import_rows r, json_object_keys(r.variables) AS v (key)
		WHERE r.import_id = $1 AND r.variables IS NOT NULL ORDER BY 1 LIMIT $2`, importID, most)
}

// A ReportRow is a row of an import with its result.
type ReportRow struct {
	Row                          int
	Phone, Number                string // phone as it was sent, and in E.164
	Name, Timezone               string
	Variables                    map[string]string
	Status                       contactfile.Status
	Issues                       []contactfile.Issue
	State                        campaigns.State // state of the row's contact; empty if it has none
	ContactID, SuppressionReason string
}

// EachRow calls each for the rows of an import, in order. The query looks up each contact by both columns of its key.
// OFFSET 0 ensures this: after an import, before Postgres has new statistics, a join would read all contacts for each
// row.
func (Imports) EachRow(ctx context.Context, q db.Querier, importID string, each func(ReportRow) error) error {
	found, err := q.Query(ctx, `
		SELECT r.n, r.phone, r.number, r.name, r.timezone, r.variables, r.status, r.issues,
			coalesce(k.state, ''), coalesce(k.id, ''), coalesce(k.reason, '')
		FROM import_rows r LEFT JOIN LATERAL (SELECT id, state, reason FROM contacts WHERE import_id = $1 AND n = r.n OFFSET 0) k ON true
		WHERE r.import_id = $1 ORDER BY r.n`, importID)
	if err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var l ReportRow
		var variables, issues []byte
		if err = found.Scan(&l.Row, &l.Phone, &l.Number, &l.Name, &l.Timezone, &variables, &l.Status, &issues, &l.State, &l.ContactID,
			&l.SuppressionReason); err != nil {
			return fmt.Errorf("rows: %w", err)
		}
		if variables != nil {
			if err = json.Unmarshal(variables, &l.Variables); err != nil {
				return fmt.Errorf("row %d: %w", l.Row, err)
			}
		}
		if issues != nil {
			if err = json.Unmarshal(issues, &l.Issues); err != nil {
				return fmt.Errorf("row %d: %w", l.Row, err)
			}
		}
		if err = each(l); err != nil {
			return err
		}
	}
	if err = found.Err(); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	return nil
}
