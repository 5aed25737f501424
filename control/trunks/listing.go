package trunks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// List returns the trunks of an organization, ordered by name.
func List(ctx context.Context, q db.Querier, orgID string) ([]Trunk, error) {
	return db.Collect(ctx, q, "trunks", func(row pgx.CollectableRow) (Trunk, error) { return scan(row) },
		"SELECT "+columns+" FROM trunks WHERE org_id = $1 ORDER BY name", orgID)
}

// ByID returns the organization's trunk with this id, or ErrUnknown.
func ByID(ctx context.Context, q db.Querier, orgID, id string) (Trunk, error) {
	t, err := scan(q.QueryRow(ctx, "SELECT "+columns+" FROM trunks WHERE org_id = $1 AND id = $2", orgID, id))
	return t, db.RowError(err, fmt.Sprintf("trunk %s", id), ErrUnknown)
}

// Route is a subgroup with its trunk and its current use.
type Route struct {
	Subgroup

	TrunkName string
	Lender    string   // organization that lends the trunk; empty if the organization owns it
	Agents    []string // names of the attached agents
	Live      int      // number of queued and running calls
}

// Routes returns the subgroups of an agent, or all subgroups of the organization if agentID is empty. They are ordered
// by trunk and name.
func Routes(ctx context.Context, q db.Querier, orgID, agentID string) ([]Route, error) {
	return db.Collect(ctx, q, "subgroups", func(row pgx.CollectableRow) (r Route, err error) {
		s := &r.Subgroup
		return r, row.Scan(
			&s.ID, &s.OrgID, &s.TrunkID, &s.Name, &s.DialPrefix, &s.AllowedDestinations, &s.CallerNumbers, &s.ConcurrentCalls,
			&s.CallsPerMinute, &s.GrantID, &r.TrunkName, &r.Lender, &r.Agents, &r.Live,
		)
	}, `
		SELECT s.id, s.org_id, s.trunk_id, s.name, s.dial_prefix, s.allowed_destinations, s.caller_numbers, s.concurrent_calls, s.calls_per_minute,
			coalesce(s.grant_id, ''), t.name, CASE WHEN t.org_id = s.org_id THEN '' ELSE o.name END,
			ARRAY(SELECT a.name FROM subgroup_agents x JOIN agents a ON a.id = x.agent_id WHERE x.subgroup_id = s.id ORDER BY a.name),
			(SELECT count(*) FROM calls c WHERE c.route_id = s.id AND c.status IN ('queued', 'ringing', 'ongoing'))
		FROM subgroups s JOIN trunks t ON t.id = s.trunk_id JOIN organizations o ON o.id = t.org_id
		WHERE s.org_id = $1 AND ($2 = '' OR EXISTS (SELECT FROM subgroup_agents x WHERE x.subgroup_id = s.id AND x.agent_id = $2))
		ORDER BY t.name, s.name`, orgID, agentID)
}

// GrantView is a grant with the names that belong to its ids.
type GrantView struct {
	Grant

	TrunkName, Lender, Borrower string // names of trunk, lender and borrower
}

// ListGrants returns the grants that an organization gives or receives, ordered by trunk and borrower.
func ListGrants(ctx context.Context, q db.Querier, orgID string) ([]GrantView, error) {
	return db.Collect(ctx, q, "grants", func(row pgx.CollectableRow) (l GrantView, err error) {
		return l, row.Scan(
			&l.ID, &l.OrgID, &l.TrunkID, &l.CallerNumbers, &l.ConcurrentCalls, &l.CallsPerMinute, &l.TrunkName, &l.Lender,
			&l.Borrower,
		)
	}, `
		SELECT g.id, g.org_id, g.trunk_id, g.caller_numbers, g.concurrent_calls, g.calls_per_minute, t.name, l.name, b.name
		FROM grants g JOIN trunks t ON t.id = g.trunk_id JOIN organizations l ON l.id = t.org_id JOIN organizations b ON b.id = g.org_id
		WHERE g.org_id = $1 OR t.org_id = $1 ORDER BY t.name, b.name`, orgID)
}

// Remove deletes a trunk with its subgroups and grants.
func Remove(ctx context.Context, q db.Querier, orgID, id string) error {
	return deleteRow(ctx, q, "DELETE FROM trunks WHERE org_id = $1 AND id = $2", orgID, id)
}

// RemoveSubgroup deletes an organization's subgroup.
func RemoveSubgroup(ctx context.Context, q db.Querier, orgID, id string) error {
	return deleteRow(ctx, q, "DELETE FROM subgroups WHERE org_id = $1 AND id = $2", orgID, id)
}

func deleteRow(ctx context.Context, q db.Querier, sql, orgID, id string) error {
	tag, err := q.Exec(ctx, sql, orgID, id)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrUnknown
	}
	return Notify(ctx, q)
}
