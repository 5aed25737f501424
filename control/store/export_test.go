package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A planNode is one of EXPLAIN's.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Removed  float64    `json:"Rows Removed by Filter"`
	Plans    []planNode `json:"Plans"`
}

// read is how many rows of calls were read, and whether without an index.
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

// Explain lists a page and tells how many rows were read for it, -1 where all
// were, and the plan.
func (s *Store) Explain(ctx context.Context, f Filter) (string, int, error) {
	q := f.Plan(scanned, columns)
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
