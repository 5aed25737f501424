package trunks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// ErrNotLent is returned if a trunk is not lent to the organization.
var ErrNotLent = errors.New("the trunk is not lent to the organization")

// Grant lends a trunk to an organization. The organization creates its own subgroups on the trunk. The limits of the
// grant apply to all these subgroups together.
type Grant struct {
	ID, OrgID, TrunkID string   // OrgID is the organization that borrows the trunk
	CallerNumbers      []string // the trunk's numbers that are lent; empty means all
	ConcurrentCalls    int      // 0 means no limit
	CallsPerMinute     int      // 0 means no limit
}

// Check returns an error if a grant of the trunk is invalid.
func (g Grant) Check(t Trunk) error {
	if g.OrgID == t.OrgID {
		return errors.New("a trunk cannot be lent to its own organization")
	}
	for _, n := range g.CallerNumbers {
		if !slices.ContainsFunc(t.CallerNumbers, func(o string) bool { return control.Digits(o) == control.Digits(n) }) {
			return fmt.Errorf("caller number %q does not belong to the trunk", n)
		}
	}
	if g.ConcurrentCalls < 0 || g.CallsPerMinute < 0 {
		return errors.New("limits must not be negative")
	}
	return nil
}

// ReplaceGrants replaces all grants of a lender. It deletes the grants that are missing in grants, together with the
// borrowers' subgroups.
func ReplaceGrants(ctx context.Context, q db.Querier, lender string, grants []Grant) error {
	ids := []string{}
	for _, g := range grants {
		var id string
		err := q.QueryRow(ctx, `
			INSERT INTO grants (id, org_id, trunk_id, caller_numbers, concurrent_calls, calls_per_minute)
			VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (trunk_id, org_id) DO UPDATE SET caller_numbers = excluded.caller_numbers,
				concurrent_calls = excluded.concurrent_calls, calls_per_minute = excluded.calls_per_minute
			RETURNING id`,
			control.NewID("grt_", time.Now()), g.OrgID, g.TrunkID, notNull(g.CallerNumbers), g.ConcurrentCalls, g.CallsPerMinute).Scan(&id)
		if err != nil {
			return fmt.Errorf("save grant: %w", err)
		}
		ids = append(ids, id)
	}
	_, err := db.Exec(ctx, q, "revoke grants", `
		DELETE FROM grants g USING trunks t WHERE t.id = g.trunk_id AND t.org_id = $1 AND NOT g.id = ANY ($2)`, lender, ids)
	return err
}

// FindGrant returns the grant of a lender's trunk to an organization, or ErrNotLent.
func FindGrant(ctx context.Context, q db.Querier, lender, trunk, orgID string) (Grant, error) {
	g := Grant{OrgID: orgID}
	err := q.QueryRow(ctx, `
		SELECT g.id, g.trunk_id, g.caller_numbers, g.concurrent_calls, g.calls_per_minute
		FROM grants g JOIN trunks t ON t.id = g.trunk_id JOIN organizations o ON o.id = t.org_id
		WHERE o.name = $1 AND t.name = $2 AND g.org_id = $3`, lender, trunk, orgID).
		Scan(&g.ID, &g.TrunkID, &g.CallerNumbers, &g.ConcurrentCalls, &g.CallsPerMinute)
	return g, db.RowError(err, "grant", ErrNotLent)
}
