package place

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
	"github.com/parley-voice/parley/control/group"
	"github.com/parley-voice/parley/control/store"
)

// A look is an order that is looked at, and what it leads to.
type look struct {
	org   string
	order Order
	found found
}

// found is what an order leads to.
type found struct {
	route route
	agent ready
	late  error // what is wrong with the agent: told after all else
	bound
	// verdict is that of the organization's own list.
	verdict control.Verdict
}

// What orders ask; many ask the same.
type (
	// A lending asks whether an organization may call through a trunk.
	lending struct{ org, trunk string }
	// A leading asks for subgroups, of any trunk and any name where these are empty.
	leading struct{ org, trunk, route, agent string }
	// A named agent of an organization.
	named struct{ org, agent string }
)

// A published is the published version of an agent; its id is empty where there is
// none.
type published struct {
	id         string
	version    int
	definition agents.Definition
	err        error // the definition cannot be read
}

// A bound is what an organization is held to, and in which zone.
type bound struct {
	caps Caps
	zone string
	err  error // the caps cannot be read
}

// An inquiry is what some orders ask, each thing once, and the answers.
type inquiry struct {
	trunks  map[lending]bool
	routes  map[leading][]route
	agents  map[named]published
	orgs    map[string]bound
	numbers map[control.Number]bool // whether they are on their organization's list
}

func inquire(all []*look) *inquiry {
	q := &inquiry{map[lending]bool{}, map[leading][]route{}, map[named]published{}, map[string]bound{}, map[control.Number]bool{}}
	for _, l := range all {
		if l.order.TrunkID != "" {
			q.trunks[lending{l.org, l.order.TrunkID}] = false
		}
		q.routes[l.leading()] = nil
		q.agents[named{l.org, l.order.Agent}] = published{}
		q.orgs[l.org] = bound{}
		q.numbers[l.number()] = false
	}
	return q
}

func (l *look) leading() leading {
	return leading{l.org, l.order.TrunkID, l.order.RouteID, l.order.Agent}
}

func (l *look) number() control.Number {
	return control.Number{OrgID: l.org, Digits: control.Digits(l.order.To)}
}

// find resolves trunk and subgroup of orders: 404, 409 or 403. It reads all that
// they need in one go.
func (d *Desk) find(ctx context.Context, all []*look) ([]error, error) {
	q := inquire(all)
	batch := &pgx.Batch{}
	q.askTrunks(batch)
	q.askRoutes(batch)
	q.askAgents(batch)
	q.askOrganizations(batch)
	numbers := slices.Collect(maps.Keys(q.numbers))
	store.QueueSuppressed(batch, numbers, func(n int) { q.numbers[numbers[n]] = true })
	if err := d.front().SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	each := make([]error, len(all))
	for n, l := range all {
		each[n] = q.answer(l)
	}
	return each, nil
}

// answer fills in what an order leads to.
func (q *inquiry) answer(l *look) (err error) {
	if l.order.TrunkID != "" && !q.trunks[lending{l.org, l.order.TrunkID}] {
		return control.Refuse(control.CodeTrunkNotFound, "no such trunk")
	}
	f := &l.found
	f.agent, f.late = q.agents[named{l.org, l.order.Agent}].ready(l.order)
	f.bound, f.verdict = q.orgs[l.org], store.VerdictOf(q.numbers[l.number()])
	if f.route, err = choose(q.routes[l.leading()], l.order.RouteID != ""); err != nil {
		return err
	}
	return errors.Join(f.route.err, f.err)
}

// ready is the agent for an order.
func (p published) ready(o Order) (a ready, err error) {
	if p.id == "" {
		return ready{}, control.Refuse(control.CodeAgentNotPublished, "the agent has no published version")
	}
	if p.err != nil {
		return ready{}, fmt.Errorf("agent: %w", p.err)
	}
	a.id, a.version = p.id, p.version
	if err = a.use(p.definition, o); err != nil {
		return ready{}, err
	}
	return a, nil
}

// ask queues a statement that tells of keys, which are its first arguments, by
// their places.
func ask[K comparable](batch *pgx.Batch, sql string, keys []K, each func(rows pgx.Rows, key func(n int) K) error, columns ...func(K) string) {
	if len(keys) == 0 {
		return
	}
	args := make([]any, len(columns))
	for n, of := range columns {
		args[n] = group.Column(keys, of)
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

func (q *inquiry) askTrunks(batch *pgx.Batch) {
	ask(batch, `
		SELECT x.n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x (org, trunk, n)
		WHERE EXISTS (SELECT FROM trunks WHERE org_id = x.org AND id = x.trunk)
		   OR EXISTS (SELECT FROM grants WHERE org_id = x.org AND trunk_id = x.trunk)`,
		slices.Collect(maps.Keys(q.trunks)), func(rows pgx.Rows, key func(int) lending) error {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			q.trunks[key(n)] = true
			return nil
		}, func(k lending) string { return k.org }, func(k lending) string { return k.trunk })
}

// routesSQL finds a subgroup by its id where the order names it; else those that its
// agent is in, and of these no more than tell that there are several.
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

func (q *inquiry) askRoutes(batch *pgx.Batch) {
	ask(batch, routesSQL, slices.Collect(maps.Keys(q.routes)), func(rows pgx.Rows, key func(int) leading) error {
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
	}, func(k leading) string { return k.org }, func(k leading) string { return k.trunk }, func(k leading) string { return k.route }, func(k leading) string { return k.agent })
}

func (q *inquiry) askAgents(batch *pgx.Batch) {
	ask(batch, `
		SELECT x.n, a.id, v.version, v.definition FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x (org, name, n)
		JOIN agents a ON a.org_id = x.org AND a.name = x.name
		JOIN agent_versions v ON v.agent_id = a.id AND v.version = a.published_version`,
		slices.Collect(maps.Keys(q.agents)), func(rows pgx.Rows, key func(int) named) error {
			var n int
			var p published
			var text []byte
			if err := rows.Scan(&n, &p.id, &p.version, &text); err != nil {
				return err
			}
			p.err = json.Unmarshal(text, &p.definition)
			q.agents[key(n)] = p
			return nil
		}, func(k named) string { return k.org }, func(k named) string { return k.agent })
}

func (q *inquiry) askOrganizations(batch *pgx.Batch) {
	ask(batch, `
		SELECT x.n, coalesce(o.settings -> 'limits', '{}'), o.timezone
		FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n) JOIN organizations o USING (id)`,
		slices.Collect(maps.Keys(q.orgs)), func(rows pgx.Rows, key func(int) string) error {
			var n int
			var b bound
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
