package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Page is a part of a list. It has fewer calls than asked for, with More set, only if
// finding them took longer than listTimeout.
type Page struct {
	Calls []control.Call
	More  bool
	// EndTime and EndID are AfterTime and AfterID of the next page.
	EndTime time.Time
	EndID   string
}

// List scans defaultScan calls, then scanGrowth times as many, until the page is full or listTimeout has passed.
const (
	defaultScan = 1000
	scanGrowth  = 4
	listTimeout = 2 * time.Second
)

// List returns a page of calls without their variables, newest first unless Ascending.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	var p Page
	began := time.Now()
	// All queries see the same snapshot.
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rest := f
		for scan := cmp.Or(s.Scan, defaultScan); ; scan *= scanGrowth {
			next, err := listOnce(ctx, tx, rest, scan)
			if err != nil {
				return err
			}
			p.Calls = append(p.Calls, next.Calls...)
			p.More, p.EndTime, p.EndID = next.More, next.EndTime, next.EndID
			rest.Limit -= len(next.Calls)
			if !p.More || rest.Limit == 0 || time.Since(began) > listTimeout {
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

// listOnce returns the calls that pass a filter among the next scan calls.
func listOnce(ctx context.Context, tx pgx.Tx, f Filter, scan int) (p Page, err error) {
	q := f.plan(scan)
	// A generic plan would be bad for rare values.
	p.Calls, err = db.Collect(ctx, tx, "", func(row pgx.CollectableRow) (control.Call, error) { return scanCall(row) },
		q.Page, append([]any{pgx.QueryExecModeExec}, q.Args...)...)
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
	err = tx.QueryRow(ctx, q.End, append([]any{pgx.QueryExecModeExec}, q.Args[:q.ScanArgs]...)...).Scan(&p.EndTime, &p.EndID)
	if errors.Is(err, pgx.ErrNoRows) { // all calls were scanned
		return p, nil
	}
	p.More = err == nil
	return p, err
}
