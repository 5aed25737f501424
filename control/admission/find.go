package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/store"
)

// lookup is an order that is being checked, and the trunk, subgroup and agent that were found for it.
type lookup struct {
	org   string
	order Order
	found resolution
}

// resolution holds the trunk, subgroup, agent and caps that an order refers to.
type resolution struct {
	route    route
	agent    usableAgent
	agentErr error // error of the agent; reported only if there is no other error
	orgLimits
	// screened is the result of the organization's suppression list.
	screened control.ScreenResult
}

// Keys of lookups. Many orders may share a key.
type (
	// trunkKey identifies a trunk by the ordering organization and the trunk's id.
	trunkKey struct{ org, trunk string }
	// routeKey selects subgroups. An empty trunk or route matches all.
	routeKey struct{ org, trunk, route, agent string }
	// agentKey identifies an agent of an organization.
	agentKey struct{ org, agent string }
)

// publishedAgent is the published version of an agent. If id is empty, no version is published.
type publishedAgent struct {
	id         string
	version    int
	definition agents.Definition
	err        error // set if the definition is invalid
}

// orgLimits holds the daily caps of an organization and its time zone.
type orgLimits struct {
	caps Caps
	zone string
	err  error // set if the caps are invalid
}

// lookupBatch holds the distinct lookups of several orders, and their results.
type lookupBatch struct {
	trunks  map[trunkKey]bool
	routes  map[routeKey][]route
	agents  map[agentKey]publishedAgent
	orgs    map[string]orgLimits
	numbers map[control.Number]bool // true for suppressed numbers
}

func newLookupBatch(all []*lookup) *lookupBatch {
	q := &lookupBatch{
		map[trunkKey]bool{}, map[routeKey][]route{}, map[agentKey]publishedAgent{}, map[string]orgLimits{}, map[control.Number]bool{},
	}
	for _, l := range all {
		if l.order.TrunkID != "" {
			q.trunks[trunkKey{l.org, l.order.TrunkID}] = false
		}
		q.routes[l.routeKey()] = nil
		q.agents[agentKey{l.org, l.order.Agent}] = publishedAgent{}
		q.orgs[l.org] = orgLimits{}
		q.numbers[l.number()] = false
	}
	return q
}

func (l *lookup) routeKey() routeKey {
	return routeKey{l.org, l.order.TrunkID, l.order.RouteID, l.order.Agent}
}

func (l *lookup) number() control.Number {
	return control.Number{OrgID: l.org, Digits: control.Digits(l.order.To)}
}

// find resolves the trunk and subgroup of each order, or refuses the order with HTTP status 404, 409 or 403. It reads
// everything in one round trip.
func (d *Controller) find(ctx context.Context, all []*lookup) ([]error, error) {
	q := newLookupBatch(all)
	batch := &pgx.Batch{}
	q.queueTrunks(batch)
	q.queueRoutes(batch)
	q.queueAgents(batch)
	q.queueOrganizations(batch)
	numbers := slices.Collect(maps.Keys(q.numbers))
	store.QueueSuppressed(batch, numbers, func(n int) { q.numbers[numbers[n]] = true })
	if err := d.orderPool().SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	each := make([]error, len(all))
	for n, l := range all {
		each[n] = q.answer(l)
	}
	return each, nil
}

// answer sets the resolution of an order from the results of the batch.
func (q *lookupBatch) answer(l *lookup) (err error) {
	if l.order.TrunkID != "" && !q.trunks[trunkKey{l.org, l.order.TrunkID}] {
		return control.Refuse(control.CodeTrunkNotFound, "no such trunk")
	}
	f := &l.found
	f.agent, f.agentErr = q.agents[agentKey{l.org, l.order.Agent}].ready(l.order)
	f.orgLimits, f.screened = q.orgs[l.org], store.ScreenResultOf(q.numbers[l.number()])
	if f.route, err = choose(q.routes[l.routeKey()], l.order.RouteID != ""); err != nil {
		return err
	}
	return errors.Join(f.route.err, f.err)
}

// ready checks the agent for an order and returns the settings that the order needs.
func (p publishedAgent) ready(o Order) (a usableAgent, err error) {
	if p.id == "" {
		return usableAgent{}, control.Refuse(control.CodeAgentNotPublished, "the agent has no published version")
	}
	if p.err != nil {
		return usableAgent{}, fmt.Errorf("agent: %w", p.err)
	}
	a.id, a.version = p.id, p.version
	if err = a.use(p.definition, o); err != nil {
		return usableAgent{}, err
	}
	return a, nil
}

// queueLookup adds a query for the keys to the batch. Each of columns returns one part of a key; the query gets one
// array for each part. Each row of the result starts with the index of its key, counted from 1.
func queueLookup[K comparable](
	batch *pgx.Batch, sql string, keys []K, each func(rows pgx.Rows, key func(n int) K) error,
	columns ...func(K) string,
) {
	if len(keys) == 0 {
		return
	}
	args := make([]any, len(columns))
	for n, of := range columns {
		args[n] = groupcommit.Column(keys, of)
	}
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := each(rows, func(n int) K { return keys[n-1] }); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

func (q *lookupBatch) queueTrunks(batch *pgx.Batch) {
	queueLookup(batch, `
		SELECT x.n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x (org, trunk, n)
		WHERE EXISTS (SELECT FROM trunks WHERE org_id = x.org AND id = x.trunk)
		   OR EXISTS (SELECT FROM grants WHERE org_id = x.org AND trunk_id = x.trunk)`,
		slices.Collect(maps.Keys(q.trunks)), func(rows pgx.Rows, key func(int) trunkKey) error {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			q.trunks[key(n)] = true
			return nil
		}, func(k trunkKey) string { return k.org }, func(k trunkKey) string { return k.trunk })
}

// routesSQL selects the subgroup that an order names. For an order without a subgroup it selects up to two subgroups
// that the agent is attached to; two are enough to detect ambiguity.
const routesSQL = `
SELECT x.n, s.id, s.trunk_id, s.dial_prefix, s.allowed_destinations, s.caller_numbers, t.caller_numbers,
       s.concurrent_calls, s.calls_per_minute, t.settings,
       coalesce(g.id, ''), coalesce(g.caller_numbers, '{}'), coalesce(g.concurrent_calls, 0), coalesce(g.calls_per_minute, 0),
       EXISTS (SELECT FROM subgroup_agents y JOIN agents a ON a.id = y.agent_id
               WHERE y.subgroup_id = s.id AND a.org_id = x.org AND a.name = x.agent)
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS x (org, trunk, route, agent, n), LATERAL (
	SELECT * FROM subgroups WHERE x.route <> '' AND id = x.route AND org_id = x.org
	UNION ALL
	(SELECT b.* FROM agents a JOIN subgroup_agents y ON y.agent_id = a.id JOIN subgroups b ON b.id = y.subgroup_id
	WHERE x.route = '' AND a.org_id = x.org AND a.name = x.agent AND b.org_id = x.org AND (x.trunk = '' OR b.trunk_id = x.trunk)
	ORDER BY b.id LIMIT 2)) s
JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id
WHERE x.trunk = '' OR s.trunk_id = x.trunk
ORDER BY x.n, s.id`

func (q *lookupBatch) queueRoutes(batch *pgx.Batch) {
	queueLookup(batch, routesSQL, slices.Collect(maps.Keys(q.routes)), func(rows pgx.Rows, key func(int) routeKey) error {
		var n int
		var r route
		var settings []byte
		if err := rows.Scan(append([]any{&n}, r.columns(&settings)...)...); err != nil {
			return err
		}
		if err := json.Unmarshal(settings, &r.settings); err != nil {
			r.err = fmt.Errorf("settings of trunk %s: %w", r.trunkID, err)
		}
		q.routes[key(n)] = append(q.routes[key(n)], r)
		return nil
	},
		func(k routeKey) string { return k.org }, func(k routeKey) string { return k.trunk },
		func(k routeKey) string { return k.route }, func(k routeKey) string { return k.agent })
}

func (q *lookupBatch) queueAgents(batch *pgx.Batch) {
	queueLookup(batch, `
		SELECT x.n, a.id, v.version, v.definition FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x (org, name, n)
		JOIN agents a ON a.org_id = x.org AND a.name = x.name
		JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version`,
		slices.Collect(maps.Keys(q.agents)), func(rows pgx.Rows, key func(int) agentKey) error {
			var n int
			var p publishedAgent
			var text []byte
			if err := rows.Scan(&n, &p.id, &p.version, &text); err != nil {
				return err
			}
			p.err = json.Unmarshal(text, &p.definition)
			q.agents[key(n)] = p
			return nil
		}, func(k agentKey) string { return k.org }, func(k agentKey) string { return k.agent })
}

func (q *lookupBatch) queueOrganizations(batch *pgx.Batch) {
	queueLookup(batch, `
		SELECT x.n, coalesce(o.settings -> 'limits', '{}'), o.timezone
		FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n) JOIN organizations o USING (id)`,
		slices.Collect(maps.Keys(q.orgs)), func(rows pgx.Rows, key func(int) string) error {
			var n int
			var b orgLimits
			var caps []byte
			if err := rows.Scan(&n, &caps, &b.zone); err != nil {
				return err
			}
			if err := json.Unmarshal(caps, &b.caps); err != nil {
				b.err = fmt.Errorf("limits of organization %s: %w", key(n), err)
			}
			q.orgs[key(n)] = b
			return nil
		}, func(k string) string { return k })
}
