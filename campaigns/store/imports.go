package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// SaveImport writes what became of a list: the import, its rows, and the
// contacts that came of it.
func (s *Store) SaveImport(ctx context.Context, tx pgx.Tx, i campaigns.Import, list []*rows.Row, contacts []campaigns.Contact) error {
	status := "refused"
	if i.Accepted {
		status = "accepted"
	}
	var frozen []byte
	if i.Screen != nil {
		var err error
		if frozen, err = json.Marshal(i.Screen); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO imports (id, org_id, campaign_id, kind, status, refusal_code, created_via, rows_seen, accepted, warned, rejected,
			duplicates, source_key, screen, created_at, rules, codes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, nullif($13, ''), $14, $15, $16, $17)`,
		i.ID, i.OrgID, i.CampaignID, i.Kind, status, i.RefusalCode, i.Via, i.RowsSeen, i.AcceptedRows, i.Warned, i.Rejected,
		i.Duplicates, i.SourceKey, frozen, i.CreatedAt, i.Rules, codes(list))
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if err = saveRows(ctx, tx, i.ID, list); err != nil {
		return fmt.Errorf("rows of the import: %w", err)
	}
	if err = saveContacts(ctx, tx, i, contacts); err != nil {
		return fmt.Errorf("contacts: %w", err)
	}
	_, err = SuppressReassigned(ctx, tx, i.OrgID, i.ID)
	return err
}

// codes are how many issues of each code rows have.
func codes(list []*rows.Row) map[string]int {
	all := map[string]int{}
	for _, r := range list {
		for _, x := range r.Issues {
			all[x.Code]++
		}
	}
	return all
}

func saveRows(ctx context.Context, tx pgx.Tx, importID string, list []*rows.Row) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"import_rows"},
		[]string{"import_id", "n", "phone", "number", "name", "timezone", "variables", "status", "issues"},
		pgx.CopyFromSlice(len(list), func(n int) ([]any, error) {
			r := list[n]
			variables, err := object(r.Variables)
			if err != nil {
				return nil, err
			}
			var issues []byte
			if len(r.Issues) > 0 {
				if issues, err = json.Marshal(r.Issues); err != nil {
					return nil, err
				}
			}
			return []any{importID, r.Row, r.Phone, r.Number.E164, r.Name, r.Timezone, variables, string(r.Status), issues}, nil
		}))
	return err
}

// object is variables as JSON, nil where there are none.
func object(m map[string]string) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

func saveContacts(ctx context.Context, tx pgx.Tx, i campaigns.Import, contacts []campaigns.Contact) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"contacts"},
		[]string{
			"id", "org_id", "campaign_id", "import_id", "n", "number", "name", "variables", "metadata", "external_id", "language", "timezone",
			"states", "zones", "priority", "not_before", "not_after", "consent_at", "state", "reason", "created_at", "updated_at", "hours_group", "due_at",
		},
		pgx.CopyFromSlice(len(contacts), func(n int) ([]any, error) {
			c := contacts[n]
			r := c.Row
			variables, err := object(r.Variables)
			if err != nil {
				return nil, err
			}
			if variables == nil {
				variables = []byte("{}")
			}
			metadata := []byte(r.Metadata)
			if metadata == nil {
				metadata = []byte("{}")
			}
			return []any{
				c.ID, i.OrgID, i.CampaignID, i.ID, r.Row, r.Number.E164, r.Name, variables, metadata, r.ExternalID, r.Language, r.Timezone,
				whole(r.Place.States), whole(r.Place.Zones), int16(r.Priority), when(r.NotBefore), when(r.NotAfter), when(r.ConsentAt), //nolint:gosec // 0 to 9
				string(c.State), c.Reason, i.CreatedAt, i.CreatedAt,
				plan.Group{Place: r.Place, Named: r.Timezone}.Key(), due(r.NotBefore, i.CreatedAt),
			}, nil
		}))
	return err
}

// due is when a contact may first be called, as far as its row says.
func due(notBefore, created time.Time) time.Time {
	if notBefore.After(created) {
		return notBefore
	}
	return created
}

// whole is a list that is never NULL.
func whole(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// ImportNotFound refuses an import that there is not.
func ImportNotFound() error { return control.Refuse(control.CodeImportNotFound, "no such import") }

const importColumns = `id, org_id, campaign_id, kind, status = 'accepted', refusal_code, created_via, rows_seen, accepted, warned,
	rejected, duplicates, coalesce(source_key, ''), screen, created_at, rules FROM imports `

// Import returns one of an organization.
func (s *Store) Import(ctx context.Context, q db.Querier, orgID, id string) (campaigns.Import, error) {
	var i campaigns.Import
	var frozen []byte
	err := q.QueryRow(ctx, "SELECT "+importColumns+"WHERE org_id = $1 AND id = $2", orgID, id).Scan(
		&i.ID, &i.OrgID, &i.CampaignID, &i.Kind, &i.Accepted, &i.RefusalCode, &i.Via, &i.RowsSeen, &i.AcceptedRows, &i.Warned,
		&i.Rejected, &i.Duplicates, &i.SourceKey, &frozen, &i.CreatedAt, &i.Rules)
	if errors.Is(err, pgx.ErrNoRows) {
		return campaigns.Import{}, ImportNotFound()
	}
	if err == nil && frozen != nil {
		err = json.Unmarshal(frozen, &i.Screen)
	}
	if err != nil {
		return campaigns.Import{}, fmt.Errorf("import: %w", err)
	}
	return i, nil
}

// Issues returns the first issues of an import in order of rows, how many
// there are of each code, and how many of all.
func (s *Store) Issues(ctx context.Context, q db.Querier, importID string, first int) (items []rows.Issue, byCode map[string]int, total int, err error) {
	items = []rows.Issue{}
	err = q.QueryRow(ctx, `
		SELECT coalesce((SELECT codes FROM imports WHERE id = $1), (
			SELECT coalesce(jsonb_object_agg(code, n), '{}') FROM (
				SELECT x ->> 'code' AS code, count(*) AS n FROM import_rows r, json_array_elements(r.issues) x
				WHERE r.import_id = $1 AND r.issues IS NOT NULL GROUP BY 1) c))`, importID).Scan(&byCode)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("issues: %w", err)
	}
	for _, n := range byCode {
		total += n
	}
	// A row that is listed has one at least.
	all, err := q.Query(ctx, "SELECT issues FROM import_rows WHERE import_id = $1 AND issues IS NOT NULL ORDER BY n LIMIT $2", importID, first)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("issues: %w", err)
	}
	var text []byte
	_, err = pgx.ForEachRow(all, []any{&text}, func() error {
		var some []rows.Issue
		if fault := json.Unmarshal(text, &some); fault != nil {
			return fault
		}
		items = append(items, some...)
		return nil
	})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("issues: %w", err)
	}
	return items[:min(len(items), first)], byCode, total, nil
}
