package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
)

// A Filter says which calls of an organization are asked for. Zero values ask
// for all.
type Filter struct {
	OrgID string
	// Of these columns the value must be one of those named.
	Statuses, Types, Agents, Campaigns, Contacts, Imports, Trunks, Routes []string
	Reasons, AnsweredBy, ExternalIDs                                      []string
	// Digits; a number matches however it is written.
	To, From                    string
	CreatedAfter, CreatedBefore *time.Time
	MinDurationS, MaxDurationS  *float64
	Ascending                   bool
	AfterTime                   time.Time // with AfterID: where the page before ended
	AfterID                     string
	Limit                       int
}

// A Page is a part of a list. It may hold fewer calls than were asked for, and
// none, though there are more: those looked at were not among those asked for.
type Page struct {
	Calls []control.Call
	More  bool
	// EndTime and EndID are the AfterTime and AfterID of the next page.
	EndTime time.Time
	EndID   string
}

// scanned is how many calls a page looks at for those that pass its filter.
const scanned = 1000

// List returns a page of calls, the newest first unless Ascending. The calls
// come without their variables.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	q := f.plan(cmp.Or(s.Scan, scanned))
	var p Page
	// Both queries see one state of the table.
	// A plan made for any values would be a bad one for those few calls have.
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, q.page, append([]any{pgx.QueryExecModeExec}, q.args...)...)
		if err != nil {
			return err
		}
		p.Calls, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (control.Call, error) { return scanCall(row) })
		if err != nil {
			return err
		}
		if len(p.Calls) > f.Limit {
			p.Calls, p.More = p.Calls[:f.Limit], true
			p.EndTime, p.EndID = p.Calls[f.Limit-1].CreatedAt, p.Calls[f.Limit-1].ID
			return nil
		}
		if q.end == "" {
			return nil
		}
		err = tx.QueryRow(ctx, q.end, append([]any{pgx.QueryExecModeExec}, q.args[:q.looked]...)...).Scan(&p.EndTime, &p.EndID)
		if errors.Is(err, pgx.ErrNoRows) { // all there are were looked at
			return nil
		}
		p.More = err == nil
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("list calls: %w", err)
	}
	return p, nil
}
