package trunks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// ErrNotLent is returned where a trunk is not lent to the organization.
var ErrNotLent = errors.New("the trunk is not lent to the organization")

// A Grant lends a trunk to an organization, which makes subgroups of its own on
// it. Its limits hold for all of those together, beside each one's own.
type Grant struct {
	ID, OrgID, TrunkID string   // OrgID borrows
	CallerNumbers      []string // of the trunk's; empty: all of them
	ConcurrentCalls    int      // 0: no limit
	CallsPerMinute     int      // 0: no limit
}

// Check returns what is wrong with a grant of a trunk.
func (g Grant) Check(t Trunk) error {
	if g.OrgID == t.OrgID {
		return errors.New("a trunk is not lent to its own organization")
	}
	for _, n := range g.CallerNumbers {
		if !slices.ContainsFunc(t.CallerNumbers, func(o string) bool { return control.Digits(o) == control.Digits(n) }) {
			return fmt.Errorf("caller number %q is none of the trunk's", n)
		}
	}
	if g.ConcurrentCalls < 0 || g.CallsPerMinute < 0 {
		return errors.New("limits are not negative")
	}
	return nil
}

// Lend makes the grants those by which an organization lends its trunks. What
// was lent otherwise is taken back, and with it the borrower's subgroups.
func Lend(ctx context.Context, q db.Querier, lender string, grants []Grant) error {
	ids := []string{}
	for _, g := range grants {
		var id string
		err := q.QueryRow(ctx, `
			INSERT INTO grants (id, org_id, trunk_id, caller_numbers, concurrent_calls, calls_per_minute)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (trunk_id, org_id) DO UPDATE SET caller_numbers = excluded.caller_numbers,
				concurrent_calls = excluded.concurrent_calls, calls_per_minute = excluded.calls_per_minute
			RETURNING id`,
			control.NewID("grt_", time.Now()), g.OrgID, g.TrunkID, list(g.CallerNumbers), g.ConcurrentCalls, g.CallsPerMinute).Scan(&id)
		if err != nil {
			return fmt.Errorf("lend a trunk: %w", err)
		}
		ids = append(ids, id)
	}
	_, err := q.Exec(ctx, `
		DELETE FROM grants g USING trunks t WHERE t.id = g.trunk_id AND t.org_id = $1 AND NOT g.id = ANY ($2)`, lender, ids)
	if err != nil {
		return fmt.Errorf("take a trunk back: %w", err)
	}
	return nil
}

// Lent returns the grant of a lender's trunk, by name, to an organization, or
// ErrNotLent.
func Lent(ctx context.Context, q db.Querier, lender, trunk, orgID string) (Grant, error) {
	g := Grant{OrgID: orgID}
	err := q.QueryRow(ctx, `
		SELECT g.id, g.trunk_id, g.caller_numbers, g.concurrent_calls, g.calls_per_minute
		FROM grants g JOIN trunks t ON t.id = g.trunk_id JOIN organizations o ON o.id = t.org_id
		WHERE o.name = $1 AND t.name = $2 AND g.org_id = $3`, lender, trunk, orgID).
		Scan(&g.ID, &g.TrunkID, &g.CallerNumbers, &g.ConcurrentCalls, &g.CallsPerMinute)
	if errors.Is(err, pgx.ErrNoRows) {
		return Grant{}, ErrNotLent
	}
	if err != nil {
		return Grant{}, fmt.Errorf("lent trunk: %w", err)
	}
	return g, nil
}
