package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
)

// A route is the subgroup through which a call goes, and its trunk.
type route struct {
	id, trunkID, prefix   string
	allowed, own, trunks  []string // destinations; caller numbers
	concurrent, perMinute int
	attached              bool
}

// findRoute resolves trunk and subgroup: 404, 409 or 403.
func findRoute(ctx context.Context, tx pgx.Tx, orgID string, o Order) (route, error) {
	if o.TrunkID != "" {
		var have bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM trunks WHERE org_id = $1 AND id = $2)", orgID, o.TrunkID).Scan(&have); err != nil {
			return route{}, fmt.Errorf("trunk: %w", err)
		}
		if !have {
			return route{}, control.Refuse(control.CodeTrunkNotFound, "no such trunk")
		}
	}
	rows, err := tx.Query(ctx, `
		SELECT s.id, s.trunk_id, s.dial_prefix, s.allowed_destinations, s.caller_numbers, t.caller_numbers,
		       s.concurrent_calls, s.calls_per_minute,
		       EXISTS (SELECT FROM subgroup_agents x JOIN agents a ON a.id = x.agent_id
		               WHERE x.subgroup_id = s.id AND a.org_id = $1 AND a.name = $4)
		FROM subgroups s JOIN trunks t ON t.id = s.trunk_id
		WHERE s.org_id = $1 AND ($2 = '' OR s.trunk_id = $2) AND ($3 = '' OR s.id = $3)
		ORDER BY s.id`, orgID, o.TrunkID, o.RouteID, o.Agent)
	if err != nil {
		return route{}, fmt.Errorf("subgroups: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (route, error) {
		var r route
		fault := row.Scan(&r.id, &r.trunkID, &r.prefix, &r.allowed, &r.own, &r.trunks, &r.concurrent, &r.perMinute, &r.attached)
		return r, fault
	})
	if err != nil {
		return route{}, fmt.Errorf("subgroups: %w", err)
	}
	return choose(all, o.RouteID != "")
}

// choose picks from the subgroups that the order leaves open.
func choose(all []route, named bool) (route, error) {
	if named && len(all) == 0 {
		return route{}, control.Refuse(control.CodeSubgroupNotFound, "no such subgroup")
	}
	var attached []route
	for _, r := range all {
		if r.attached {
			attached = append(attached, r)
		}
	}
	switch len(attached) {
	case 0:
		return route{}, control.Refuse(control.CodeAgentNotInSubgroup, "the agent is attached to no such subgroup")
	case 1:
		return attached[0], nil
	default:
		return route{}, control.Refuse(control.CodeAgentSubgroupAmbig, "the agent is attached to several subgroups; name one with route_id")
	}
}

// caller returns the number to show: the one asked for, where the route has
// it, else the route's first.
func (r route) caller(asked string) (string, error) {
	pool := r.own
	if len(pool) == 0 {
		pool = r.trunks
	}
	if asked == "" {
		if len(pool) == 0 {
			return "", control.Refuse(control.CodeCallerNumberDenied, "the route has no caller number")
		}
		return pool[0], nil
	}
	for _, n := range pool {
		if control.Digits(n) == control.Digits(asked) {
			return n, nil
		}
	}
	return "", control.Refuse(control.CodeCallerNumberDenied, "the route may not show this caller number")
}

// limits checks the subgroup's limits. A lock holds other orders of the
// subgroup back until this one is registered, so that they count it.
func (r route) limits(ctx context.Context, tx pgx.Tx, now time.Time) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "subgroup "+r.id); err != nil {
		return fmt.Errorf("subgroup limits: %w", err)
	}
	var alive, recent int
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM calls WHERE route_id = $1 AND status IN ('queued', 'ringing', 'ongoing')),
		       (SELECT count(*) FROM calls WHERE route_id = $1 AND created_at > $2)`,
		r.id, now.Add(-time.Minute)).Scan(&alive, &recent)
	switch {
	case err != nil:
		return fmt.Errorf("subgroup limits: %w", err)
	case alive >= r.concurrent:
		return control.Refuse(control.CodeSubgroupConcurrency, "the subgroup's concurrent calls are exhausted")
	case recent >= r.perMinute:
		return &control.Error{Code: control.CodeSubgroupRate, Message: "the subgroup's calls per minute are exhausted", RetryAfter: time.Minute}
	}
	return nil
}

// A ready is a published agent.
type ready struct {
	id, voicemail string
	version       int
	recording     bool
}

// published finds the agent of an order, and whether all its texts can be filled.
func published(ctx context.Context, tx pgx.Tx, orgID string, o Order) (ready, error) {
	var a ready
	var text []byte
	err := tx.QueryRow(ctx, `
		SELECT a.id, v.version, v.definition FROM agents a
		JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version
		WHERE a.org_id = $1 AND a.name = $2`, orgID, o.Agent).Scan(&a.id, &a.version, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return ready{}, control.Refuse(control.CodeAgentNotPublished, "the agent has no published version")
	}
	if err != nil {
		return ready{}, fmt.Errorf("agent: %w", err)
	}
	var d agents.Definition
	if err := json.Unmarshal(text, &d); err != nil {
		return ready{}, fmt.Errorf("agent: %w", err)
	}
	if missing := d.Missing(d.Values(o.Name, o.Variables)); len(missing) > 0 {
		return ready{}, &MissingError{missing}
	}
	a.voicemail, a.recording = d.Voicemail, d.Recording
	return a, nil
}
