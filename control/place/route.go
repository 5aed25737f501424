package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline"
)

// A route is the subgroup through which a call goes, its trunk, and the grant
// by which that was lent; the grant is empty for a trunk of one's own.
type route struct {
	id, trunkID, prefix  string
	allowed, own, trunks []string // destinations; caller numbers
	limits               limits
	settings             trunks.Settings
	grant                grant
	attached             bool
}

// limits are most calls at a time and in a minute.
type limits struct{ concurrent, perMinute int }

// A grant has an empty id where the trunk is not lent; limits of 0 are none.
type grant struct {
	id     string
	pool   []string
	limits limits
}

const trunkSQL = `
SELECT EXISTS (SELECT FROM trunks WHERE org_id = $1 AND id = $2)
    OR EXISTS (SELECT FROM grants WHERE org_id = $1 AND trunk_id = $2)`

const routesSQL = `
SELECT s.id, s.trunk_id, s.dial_prefix, s.allowed_destinations, s.caller_numbers, t.caller_numbers,
       s.concurrent_calls, s.calls_per_minute, t.settings,
       coalesce(g.id, ''), coalesce(g.caller_numbers, '{}'), coalesce(g.concurrent_calls, 0), coalesce(g.calls_per_minute, 0),
       EXISTS (SELECT FROM subgroup_agents x JOIN agents a ON a.id = x.agent_id
               WHERE x.subgroup_id = s.id AND a.org_id = $1 AND a.name = $4)
FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
WHERE s.org_id = $1 AND ($2 = '' OR s.trunk_id = $2) AND ($3 = '' OR s.id = $3)
ORDER BY s.id`

func scanRoute(row pgx.CollectableRow) (route, error) {
	var r route
	err := row.Scan(r.columns()...)
	return r, err
}

// columns are where a row of routesSQL goes.
func (r *route) columns() []any {
	return []any{
		&r.id, &r.trunkID, &r.prefix, &r.allowed, &r.own, &r.trunks, &r.limits.concurrent, &r.limits.perMinute, &r.settings,
		&r.grant.id, &r.grant.pool, &r.grant.limits.concurrent, &r.grant.limits.perMinute, &r.attached,
	}
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

// callers returns the numbers that the route may show: the subgroup's, else the
// trunk's, and of those the ones that were lent.
func (r route) callers() []string {
	pool := r.own
	if len(pool) == 0 {
		pool = r.trunks
	}
	if len(r.grant.pool) == 0 {
		return pool
	}
	var lent []string
	for _, n := range pool {
		if has(r.grant.pool, n) {
			lent = append(lent, n)
		}
	}
	return lent
}

// has reports whether a number is in a pool, however it is written.
func has(pool []string, number string) bool {
	return slices.ContainsFunc(pool, func(n string) bool { return control.Digits(n) == control.Digits(number) })
}

// caller returns the number to show: the one asked for, where the route has
// it, else the route's first.
func (r route) caller(asked string) (string, error) {
	pool := r.callers()
	if asked == "" {
		if len(pool) == 0 {
			return "", control.Refuse(control.CodeCallerNumberDenied, "the route has no caller number")
		}
		return pool[0], nil
	}
	if i := slices.IndexFunc(pool, func(n string) bool { return control.Digits(n) == control.Digits(asked) }); i >= 0 {
		return pool[i], nil
	}
	lent := r.grant.pool
	if len(lent) == 0 {
		lent = r.trunks
	}
	// A borrower learns of no other number of the lender's.
	if r.grant.id != "" && !has(lent, asked) {
		return "", control.Refuse(control.CodeCallerNumberGrant, "the trunk was lent without this caller number")
	}
	return "", control.Refuse(control.CodeCallerNumberDenied, "the route may not show this caller number")
}

// A ready is an agent that may be used.
type ready struct {
	id, voicemail string
	version       int
	recording     bool
	longest       time.Duration
}

const agentSQL = `
SELECT a.id, v.version, v.definition FROM agents a
JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version
WHERE a.org_id = $1 AND a.name = $2`

// scanAgent reads the published agent of an order, and holds its texts to what
// the order fills in.
func scanAgent(row pgx.Row, o Order) (ready, error) {
	var a ready
	var text []byte
	err := row.Scan(&a.id, &a.version, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return ready{}, control.Refuse(control.CodeAgentNotPublished, "the agent has no published version")
	}
	if err != nil {
		return ready{}, fmt.Errorf("agent: %w", err)
	}
	if _, err := a.read(text, o); err != nil {
		return ready{}, err
	}
	return a, nil
}

// read reads the definition of an agent, and returns what it hears, thinks and
// speaks with.
func (a *ready) read(text []byte, o Order) (pipeline.Engines, error) {
	var d agents.Definition
	if err := json.Unmarshal(text, &d); err != nil {
		return pipeline.Engines{}, fmt.Errorf("agent: %w", err)
	}
	if missing := d.Missing(d.Values(o.Name, o.Variables)); len(missing) > 0 {
		return pipeline.Engines{}, &MissingError{missing}
	}
	a.voicemail, a.recording, a.longest = d.Voicemail, d.Recording, time.Duration(d.MaxDurationS)*time.Second
	return d.Speech, nil
}

// found is what an order leads to.
type found struct {
	route route
	agent ready
	late  error // what is wrong with the agent: told after all else
	caps  Caps
	zone  string // of the organization
	// verdict is that of the organization's own list.
	verdict control.Verdict
}

// find resolves trunk and subgroup: 404, 409 or 403. It reads all that the
// order needs in one go.
func (d *Desk) find(ctx context.Context, orgID string, o Order) (f found, err error) {
	var known bool
	var all []route
	batch := &pgx.Batch{}
	if o.TrunkID != "" {
		batch.Queue(trunkSQL, orgID, o.TrunkID).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	}
	batch.Queue(routesSQL, orgID, o.TrunkID, o.RouteID, o.Agent).Query(func(rows pgx.Rows) (fault error) {
		all, fault = pgx.CollectRows(rows, scanRoute)
		return fault
	})
	batch.Queue(agentSQL, orgID, o.Agent).QueryRow(func(row pgx.Row) error {
		f.agent, f.late = scanAgent(row, o)
		return nil
	})
	batch.Queue("SELECT coalesce(settings -> 'limits', '{}'), timezone FROM organizations WHERE id = $1", orgID).QueryRow(func(row pgx.Row) error {
		return row.Scan(&f.caps, &f.zone)
	})
	d.Store.QueueAllowed(batch, control.Number{OrgID: orgID, Digits: control.Digits(o.To)}, &f.verdict)
	if err = d.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return found{}, fmt.Errorf("routes: %w", err)
	}
	if o.TrunkID != "" && !known {
		return found{}, control.Refuse(control.CodeTrunkNotFound, "no such trunk")
	}
	f.route, err = choose(all, o.RouteID != "")
	return f, err
}
