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

// Page is a part of a list. If the search takes longer than listTimeout, a page may have fewer calls than asked for
// although More is true.
type Page struct {
	Calls []control.Call
	More  bool
	// EndTime and EndID are the values for AfterTime and AfterID that request the next page.
	EndTime time.Time
	EndID   string
}

// List scans defaultScan calls first, and then scanGrowth times as many in each further round, until the page is full
// or listTimeout has passed. If it selects by tag or score, or lists the slowest calls first, it scans pageScan times as many
// calls as the page has first, because each of them is found among many others. The slowest calls of a time range lie
// apart in the table, so the scan grows by slowScanGrowth only, unless calls of other agents or campaigns are left out first.
const (
	defaultScan    = 1000
	pageScan       = 4
	scanGrowth     = 4
	slowScanGrowth = 2
	listTimeout    = 2 * time.Second
)

// List returns a page of calls without their variables. The newest calls come first, or the slowest, unless f.Ascending is
// set.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	var p Page
	began := time.Now()
	// Repeatable read lets all queries see the same snapshot.
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if f.Text != "" {
			if err = checkText(ctx, tx, f.Text); err != nil {
				return err
			}
			if f.textLeads() {
				p, err = listText(ctx, tx, f, cmp.Or(s.Scan, defaultScan), began)
				return err
			}
		}
		rest, next, growth := f, listOnce, scanGrowth
		if f.Slowest {
			next = listSlowest
			if !f.selectsHours() {
				growth = slowScanGrowth
			}
		}
		for scan := firstScan(f, cmp.Or(s.Scan, defaultScan)); ; scan *= growth {
			part, err := next(ctx, tx, rest, scan)
			if err != nil {
				return err
			}
			p.Calls = append(p.Calls, part.Calls...)
			p.More, p.EndTime, p.EndID = part.More, part.EndTime, part.EndID
			rest.Limit -= len(part.Calls)
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

// firstScan returns how many calls to scan first, at most some.
func firstScan(f Filter, some int) int {
	if f.Tag != "" || len(f.Scores) > 0 || f.Slowest {
		return min(some, pageScan*f.Limit)
	}
	return some
}

// listOnce scans the next calls, as many as the argument scan, and returns those that match the filter.
func listOnce(ctx context.Context, tx pgx.Tx, f Filter, scan int) (p Page, err error) {
	q := f.plan(scan)
	// QueryExecModeExec plans with the actual values. A generic plan would be slow for rare values.
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
	if errors.Is(err, pgx.ErrNoRows) { // no further call exists
		return p, nil
	}
	p.More = err == nil
	return p, err
}
