package store

import (
	"context"
	"fmt"
	"strings"
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
	AfterTime                   time.Time // with AfterID: the last call of the page before
	AfterID                     string
	Limit                       int
}

// List returns a page of calls, the newest first unless Ascending, and whether
// there are more. The calls come without their variables.
func (s *Store) List(ctx context.Context, f Filter) ([]control.Call, bool, error) {
	where, args := f.where()
	order := "DESC"
	if f.Ascending {
		order = "ASC"
	}
	args = append(args, f.Limit+1)
	// A summary shows no variables, and they may be long.
	brief := strings.Replace(columns, "c.variables", "'{}'::json", 1)
	rows, err := s.Pool.Query(ctx, "SELECT "+brief+fromCalls+"WHERE "+where+
		fmt.Sprintf(" ORDER BY c.created_at %s, c.id %s LIMIT $%d", order, order, len(args)), args...)
	if err != nil {
		return nil, false, fmt.Errorf("list calls: %w", err)
	}
	calls, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (control.Call, error) { return scanCall(row) })
	if err != nil {
		return nil, false, fmt.Errorf("list calls: %w", err)
	}
	if len(calls) > f.Limit {
		return calls[:f.Limit], true, nil
	}
	return calls, false, nil
}

// where builds the condition; what comes from outside is an argument, always.
func (f Filter) where() (string, []any) {
	conds, args := []string{"c.org_id = $1"}, []any{f.OrgID}
	add := func(cond string, vs ...any) {
		for _, v := range vs {
			args = append(args, v)
			cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		conds = append(conds, cond)
	}
	for _, c := range []struct {
		column string
		values []string
	}{
		{"c.status", f.Statuses},
		{"c.call_type", f.Types},
		{"coalesce(a.name, c.agent_name)", f.Agents},
		{"c.campaign_id", f.Campaigns},
		{"c.contact_id", f.Contacts},
		{"c.import_id", f.Imports},
		{"c.trunk_id", f.Trunks},
		{"c.route_id", f.Routes},
		{"c.disconnection_reason", f.Reasons},
		{"c.answered_by", f.AnsweredBy},
		{"c.external_id", f.ExternalIDs},
	} {
		if len(c.values) > 0 {
			add(c.column+" = ANY (?)", c.values)
		}
	}
	if f.To != "" {
		add("c.to_number = ANY (?)", control.SameNumber(f.To))
	}
	if f.From != "" {
		add("regexp_replace(c.from_number, '[^0-9]', '', 'g') = ANY (?)", control.SameNumber(f.From))
	}
	if f.CreatedAfter != nil {
		add("c.created_at > ?", *f.CreatedAfter)
	}
	if f.CreatedBefore != nil {
		add("c.created_at < ?", *f.CreatedBefore)
	}
	const duration = "extract(epoch FROM c.ended_at - c.answered_at)"
	if f.MinDurationS != nil {
		add(duration+" >= ?::float8", *f.MinDurationS)
	}
	if f.MaxDurationS != nil {
		add(duration+" <= ?::float8", *f.MaxDurationS)
	}
	if f.AfterID != "" {
		sign := "<"
		if f.Ascending {
			sign = ">"
		}
		add("(c.created_at, c.id) "+sign+" (?, ?)", f.AfterTime, f.AfterID)
	}
	return strings.Join(conds, " AND "), args
}
