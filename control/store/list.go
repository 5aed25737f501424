package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/listing"
)

// A Filter says which calls of an organization are asked for.
type Filter = listing.Filter

// A Page is a part of a list. It holds as many calls as were asked for, where
// there are so many; fewer, though there may be more, only where finding them
// took too long.
type Page struct {
	Calls []control.Call
	More  bool
	// EndTime and EndID are the AfterTime and AfterID of the next page.
	EndTime time.Time
	EndID   string
}

// A page looks at so many calls for those that pass its filter; where it is not
// full then, at wider times as many, and so on, for longestLook.
const (
	scanned     = 1000
	wider       = 4
	longestLook = 2 * time.Second
)

// List returns a page of calls, the newest first unless Ascending. The calls
// come without their variables.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	var p Page
	began := time.Now()
	// All queries see one state of the table.
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rest := f
		for scan := cmp.Or(s.Scan, scanned); ; scan *= wider {
			next, err := look(ctx, tx, rest, scan)
			if err != nil {
				return err
			}
			p.Calls = append(p.Calls, next.Calls...)
			p.More, p.EndTime, p.EndID = next.More, next.EndTime, next.EndID
			rest.Limit -= len(next.Calls)
			if !p.More || rest.Limit == 0 || time.Since(began) > longestLook {
				return nil
			}
			rest.AfterTime, rest.AfterID = p.EndTime, p.EndID
		}
	})
	if err != nil {
		return Page{}, fmt.Errorf("list calls: %w", err)
	}
	return p, nil
}

// look returns those that pass a filter among the next calls that are looked at.
func look(ctx context.Context, tx pgx.Tx, f Filter, scan int) (p Page, err error) {
	q := f.Plan(scan, columns)
	// A plan made for any values would be a bad one for those few calls have.
	rows, err := tx.Query(ctx, q.Page, append([]any{pgx.QueryExecModeExec}, q.Args...)...)
	if err != nil {
		return Page{}, err
	}
	p.Calls, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (control.Call, error) { return scanCall(row) })
	if err != nil {
		return Page{}, err
	}
	if len(p.Calls) > f.Limit {
		p.Calls, p.More = p.Calls[:f.Limit], true
		p.EndTime, p.EndID = p.Calls[f.Limit-1].CreatedAt, p.Calls[f.Limit-1].ID
		return p, nil
	}
	if q.End == "" {
		return p, nil
	}
	err = tx.QueryRow(ctx, q.End, append([]any{pgx.QueryExecModeExec}, q.Args[:q.Looked]...)...).Scan(&p.EndTime, &p.EndID)
	if errors.Is(err, pgx.ErrNoRows) { // all there are were looked at
		return p, nil
	}
	p.More = err == nil
	return p, err
}
