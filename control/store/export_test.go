package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
)

// planNode is a node of the plan that EXPLAIN returns.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Removed  float64    `json:"Rows Removed by Filter"`
	Plans    []planNode `json:"Plans"`
}

// read returns the number of calls that the plan read, and whether it read them by a sequential scan.
func (n planNode) read() (rows int, all bool) {
	if n.Relation == "calls" {
		rows, all = int((n.Rows+n.Removed)*n.Loops), n.Type == "Seq Scan"
	}
	for _, p := range n.Plans {
		r, a := p.read()
		rows, all = rows+r, all || a
	}
	return rows, all
}

// ColumnNames returns the column names of each table that package store defines.
func ColumnNames() map[string][]string {
	return map[string][]string{
		"calls":    groupcommit.Column(callColumns, func(c db.Column[CallRow]) string { return c.Name }),
		"attempts": groupcommit.Column(AttemptColumns, func(c db.Column[AttemptRow]) string { return c.Name }),
	}
}

// Explain lists a page and returns the query plan and the number of rows read. The number is -1 if the plan scans the
// whole table.
func (s *Store) Explain(ctx context.Context, f Filter) (string, int, error) {
	q := f.plan(defaultScan)
	if f.Slowest {
		q = f.planSlowest(defaultScan, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	}
	var text []byte
	args := append([]any{pgx.QueryExecModeExec}, q.Args...)
	if err := s.Pool.QueryRow(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+q.Page, args...).Scan(&text); err != nil {
		return "", 0, fmt.Errorf("%s: %w", q.Page, err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(text, &plans); err != nil {
		return "", 0, err
	}
	rows, all := plans[0].Plan.read()
	if all {
		rows = -1
	}
	return string(text), rows, nil
}

// FindStart makes the store believe that a search of the whole queue took a time, and returns from where it searches
// next, and for how long.
func (s *Store) FindStart(ctx context.Context, took time.Duration) (from time.Time, last time.Duration) {
	now := time.Now()
	s.search.find(ctx, s.dialPool(), time.Time{}, took)
	return s.search.start(now), s.search.until.Sub(now)
}

// ResetSearch makes the next search read the whole queue.
func (s *Store) ResetSearch() { s.search.until = time.Time{} }
