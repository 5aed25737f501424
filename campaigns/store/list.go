package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// A Filter selects campaigns. Zero fields select all.
type Filter struct {
	OrgID                       string
	Status                      []string
	Agent, CreatedVia           string
	Classification, Name        string // prefix of the name
	CreatedAfter, CreatedBefore *time.Time
	Ascending                   bool
	// AfterTime and AfterID are the last position of the previous page.
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// List returns a page of campaigns, and whether there are more.
func (s *Store) List(ctx context.Context, f Filter) ([]campaigns.Campaign, bool, error) {
	sql, args := f.query()
	all, err := db.Collect(ctx, s.Pool, "campaigns", scanRow, sql, args...)
	return all[:min(len(all), f.Limit)], len(all) > f.Limit, err
}

// query returns the statement of a filter. It selects one row more than the page has.
func (f Filter) query() (string, []any) {
	var where []string
	var args []any
	add := func(when bool, condition string, values ...any) {
		if !when {
			return
		}
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	order, beyond := "DESC", "<"
	if f.Ascending {
		order, beyond = "ASC", ">"
	}
	add(true, "c.org_id = ?", f.OrgID)
	add(len(f.Status) > 0, "c.status = ANY (?)", f.Status)
	add(f.Agent != "", "coalesce(a.name, c.agent_name) = ?", f.Agent)
	add(f.CreatedVia != "", "c.created_via = ?", f.CreatedVia)
	add(f.Classification != "", "c.classification = ?", f.Classification)
	add(f.Name != "", "starts_with(c.name, ?)", f.Name)
	add(f.CreatedAfter != nil, "c.created_at >= ?", f.CreatedAfter)
	add(f.CreatedBefore != nil, "c.created_at < ?", f.CreatedBefore)
	add(f.AfterID != "", "(c.created_at, c.id) "+beyond+" (?, ?)", f.AfterTime, f.AfterID)
	args = append(args, f.Limit+1)
	return fmt.Sprintf("SELECT %s%sWHERE %s ORDER BY c.created_at %s, c.id %s LIMIT $%d",
		columns, from, strings.Join(where, " AND "), order, order, len(args)), args
}
