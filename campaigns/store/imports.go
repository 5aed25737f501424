package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// saveBatch is the number of rows that Save writes, with their contacts, in two statements.
const saveBatch = 5000

// Save writes an import, its rows and contacts. It keeps only some of the rows in memory at a time. codes counts the
// issues of the rows by code. progress, if not nil, receives how many rows and contacts are written.
func (Imports) Save(
	ctx context.Context, tx pgx.Tx, i campaigns.Import, codes map[string]int, rows iter.Seq2[campaigns.Contact, error], progress func(n int),
) error {
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
		i.Duplicates, i.SourceKey, frozen, i.CreatedAt, i.Rules, codes)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if err = saveAll(ctx, tx, i, rows, progress); err != nil {
		return fmt.Errorf("rows of the import: %w", err)
	}
	if _, err = SuppressReassigned(ctx, tx, i.OrgID, i.ID); err != nil {
		return err
	}
	_, err = db.Exec(ctx, tx, "notify", "SELECT pg_notify($1, '')", ChannelCampaigns)
	return err
}

// saveAll writes rows and their contacts, batch by batch.
func saveAll(ctx context.Context, tx pgx.Tx, i campaigns.Import, rows iter.Seq2[campaigns.Contact, error], progress func(n int)) error {
	batch, done := make([]campaigns.Contact, 0, min(saveBatch, i.RowsSeen)), 0
	save := func() error {
		err := saveRows(ctx, tx, i.ID, batch)
		if err == nil {
			contacts := slices.DeleteFunc(batch, func(c campaigns.Contact) bool { return c.ID == "" })
			err = saveContacts(ctx, tx, i, contacts)
			done += len(batch) + len(contacts)
		}
		if progress != nil {
			progress(done)
		}
		batch = batch[:0]
		return err
	}
	for c, err := range rows {
		if err != nil {
			return err
		}
		if batch = append(batch, c); len(batch) == saveBatch {
			if err = save(); err != nil {
				return err
			}
		}
	}
	return save()
}

func saveRows(ctx context.Context, tx pgx.Tx, importID string, list []campaigns.Contact) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"import_rows"},
		[]string{"import_id", "n", "phone", "number", "name", "timezone", "variables", "status", "issues"},
		pgx.CopyFromSlice(len(list), func(n int) ([]any, error) {
			r := list[n].Row
			variables, err := encodeVariables(r.Variables)
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

// encodeVariables encodes variables as JSON, nil for none.
func encodeVariables(m map[string]string) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

func saveContacts(ctx context.Context, tx pgx.Tx, i campaigns.Import, contacts []campaigns.Contact) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"contacts"},
		[]string{
			"id", "org_id", "campaign_id", "import_id", "n", "number", "name", "variables", "metadata", "external_id", "language", "timezone",
			"states", "zones", "priority", "not_before", "not_after", "consent_at", "state", "reason", "created_at", "updated_at",
			"hours_group", "due_at",
		},
		pgx.CopyFromSlice(len(contacts), func(n int) ([]any, error) {
			c := contacts[n]
			r := c.Row
			variables, err := encodeVariables(r.Variables)
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
				orEmpty(r.Location.States), orEmpty(r.Location.Zones),
				int16(r.Priority), nullTime(r.NotBefore), nullTime(r.NotAfter), nullTime(r.ConsentAt), //nolint:gosec // 0 to 9
				string(c.State), c.Reason, i.CreatedAt, i.CreatedAt,
				plan.Group{Location: r.Location, Named: r.Timezone}.Key(), dueAt(r.NotBefore, i.CreatedAt),
			}, nil
		}))
	return err
}

// dueAt returns the earliest time at which a contact may be called: notBefore, or its creation time if that is later.
func dueAt(notBefore, created time.Time) time.Time {
	if notBefore.After(created) {
		return notBefore
	}
	return created
}

// orEmpty returns an empty list for nil, because the column is not nullable.
func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// ImportNotFound returns the refusal for an unknown import.
func ImportNotFound() error { return control.Refuse(control.CodeImportNotFound, "no such import") }

const importColumns = `id, org_id, campaign_id, kind, status = 'accepted', refusal_code, created_via, rows_seen, accepted, warned,
	rejected, duplicates, coalesce(source_key, ''), screen, created_at, rules FROM imports `

// Get returns an import of an organization.
func (Imports) Get(ctx context.Context, q db.Querier, orgID, id string) (campaigns.Import, error) {
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

// Issues returns the issues of an import in row order, no more than first of them, with the count of issues by code and
// the total.
func (Imports) Issues(
	ctx context.Context, q db.Querier, importID string, first int,
) (items []contactfile.Issue, byCode map[string]int, total int, err error) {
	items = []contactfile.Issue{}
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
	// Every selected row has at least one issue.
	const query = "SELECT issues FROM import_rows WHERE import_id = $1 AND issues IS NOT NULL ORDER BY n LIMIT $2"
	var text []byte
	if err = db.Each(ctx, q, "issues", []any{&text}, func() error {
		var issues []contactfile.Issue
		fault := json.Unmarshal(text, &issues)
		items = append(items, issues...)
		return fault
	}, query, importID, first); err != nil {
		return nil, nil, 0, err
	}
	return items[:min(len(items), first)], byCode, total, nil
}

// Split counts the rows of an import by result. byCode has the count of its issues by code.
func (Imports) Split(ctx context.Context, q db.Querier, i campaigns.Import, byCode map[string]int) (contactfile.Split, error) {
	var x contactfile.Split
	const skipped = "SELECT count(*) FROM contacts WHERE import_id = $1 AND state = 'suppressed' AND reason = $2"
	err := q.QueryRow(ctx, skipped, i.ID, campaigns.GeoRejected).Scan(&x.Skipped)
	if err != nil {
		return x, fmt.Errorf("rows of the import: %w", err)
	}
	x.Called = i.AcceptedRows - x.Skipped
	if x.Duplicate = i.RowsSeen - i.AcceptedRows - i.Rejected; x.Duplicate == 0 { // no row was dropped, but all may be rejected
		x.Duplicate = min(byCode[contactfile.DuplicatePhone], i.Rejected)
	}
	x.Invalid = i.RowsSeen - x.Called - x.Skipped - x.Duplicate
	return x, nil
}
