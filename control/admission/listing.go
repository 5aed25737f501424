package admission

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
)

// Trunk is a trunk through which an agent may call.
type Trunk struct {
	ID, Name, Provider string
	Lent               bool // the trunk is borrowed from another organization
	Line               trunks.Trunk
	Subgroups          []Subgroup
}

// Subgroup is a subgroup to which an agent is attached.
type Subgroup struct {
	ID, Name, DialPrefix    string
	CallerNumbers           []string // allowed caller numbers; the first is the default
	AllowedDestinations     []string
	ConcurrentCalls, InUse  int // limit and current number of active calls
	CallsPerMinute, Started int // limit and number of calls in the last minute
}

const listSQL = `
SELECT s.id, s.trunk_id, s.dial_prefix, s.allowed_destinations, s.caller_numbers, t.caller_numbers,
       s.concurrent_calls, s.calls_per_minute, t.settings,
       coalesce(g.id, ''), coalesce(g.caller_numbers, '{}'), coalesce(g.concurrent_calls, 0), coalesce(g.calls_per_minute, 0), true,
       s.name, t.name, t.proxy,
       (SELECT count(*) FROM calls WHERE route_id = s.id AND status IN ('queued', 'ringing', 'ongoing')),
       (SELECT count(*) FROM calls WHERE route_id = s.id AND created_at > statement_timestamp() - interval '1 minute')
FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
JOIN subgroup_agents x ON x.subgroup_id = s.id JOIN agents a ON a.id = x.agent_id AND a.org_id = $1 AND a.name = $2
WHERE s.org_id = $1 ORDER BY t.name, t.id, s.name, s.id`

// Routes returns the trunks and subgroups of an agent, ordered by name. It refuses an unknown agent.
func (d *Controller) Routes(ctx context.Context, orgID, agent string) ([]Trunk, error) {
	return Routes(ctx, d.Pool, orgID, agent)
}

// Routes returns the result of Controller.Routes. It uses the caller's transaction or connection.
func Routes(ctx context.Context, q db.Querier, orgID, agent string) ([]Trunk, error) {
	var known bool
	err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM agents WHERE org_id = $1 AND name = $2)", orgID, agent).Scan(&known)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	if !known {
		return nil, control.Refuse(control.CodeCampaignAgentUnknown, "no agent with this name")
	}
	rows, err := q.Query(ctx, listSQL, orgID, agent)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	var all []Trunk
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var r route
		var s Subgroup
		var t Trunk
		fault := row.Scan(append(r.columns(&r.settings), &s.Name, &t.Name, &t.Line.Proxy, &s.InUse, &s.Started)...)
		if len(all) == 0 || all[len(all)-1].ID != r.trunkID {
			t.ID, t.Provider, t.Lent, t.Line.Settings = r.trunkID, r.settings.Provider, r.grant.id != "", r.settings
			all = append(all, t)
		}
		s.ID, s.DialPrefix, s.CallerNumbers, s.AllowedDestinations = r.id, r.prefix, r.numbers.Usable(), r.allowed
		most := r.effectiveLimits()
		s.ConcurrentCalls, s.CallsPerMinute = most.concurrent, most.perMinute
		last := &all[len(all)-1]
		last.Subgroups = append(last.Subgroups, s)
		return struct{}{}, fault
	})
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return all, nil
}

// effectiveLimits returns the smaller of the limits of subgroup and grant.
func (r route) effectiveLimits() limits {
	l := r.limits
	if g := r.grant.limits.concurrent; g > 0 {
		l.concurrent = min(l.concurrent, g)
	}
	if g := r.grant.limits.perMinute; g > 0 {
		l.perMinute = min(l.perMinute, g)
	}
	return l
}
