package place

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/group"
	"github.com/parley-voice/parley/control/store"
)

// Orders that come while others are looked at are looked at together: none waits for
// more of them to come. They are registered in one transaction.
const (
	mostLooked  = 192 // that are looked at, or wait to be
	ordersApart = 4 * time.Millisecond
	mostWritten = 64  // at once
	mostInLine  = 256 // that are written, or wait to be
)

// An entry is an order that was looked at, and the call that comes of it.
type entry struct {
	org   string
	order Order
	found found
	from  string
	also  Also
	call  control.Call
}

// begin opens gate, line and groups, once.
func (d *Desk) begin() {
	d.once.Do(func() {
		d.gate.Most, d.line.Most = mostLooked, mostInLine
		d.looks = group.Group[*look]{Write: d.find, Within: 5 * time.Second, Blames: store.OfTheRow}
		d.write = group.Group[*entry]{
			Write: d.register, Most: mostWritten, Apart: ordersApart, Within: 5 * time.Second, Blames: store.OfTheRow,
			Stays: true, // its place in line and queue, and its idempotency key, are the call's until then
		}
	})
}

// register registers the calls of orders in one transaction, and says what is
// against each of the others.
func (d *Desk) register(ctx context.Context, all []*entry) (each []error, err error) {
	err = d.front().AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		// The pool drops a connection that comes back inside a transaction.
		l, fault := hold(ctx, conn, all)
		if fault != nil {
			return errors.Join(fault, rollback(ctx, conn))
		}
		each = make([]error, len(all))
		batch := &pgx.Batch{}
		for n, e := range all {
			each[n] = l.admit(batch, e)
		}
		if len(l.calls) == 0 {
			return rollback(ctx, conn)
		}
		l.queueCalls(batch)
		if d.Ring == nil {
			batch.Queue("SELECT pg_notify($1, '')", store.BellQueue)
		}
		batch.Queue("COMMIT")
		if fault = conn.SendBatch(ctx, batch).Close(); fault != nil {
			return errors.Join(held(fmt.Errorf("register calls: %w", fault)), rollback(ctx, conn))
		}
		return nil
	})
	return each, err
}

// rollback ends a transaction of which nothing is to be, so that the connection
// serves the next.
func rollback(ctx context.Context, conn *pgxpool.Conn) error {
	if conn.Conn().IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, "ROLLBACK")
	return err
}

// A ledger is what subgroups, grants and organizations have in use while orders
// are registered.
type ledger struct {
	numbers map[string]placed // of the last call of a subgroup
	own     map[string]*limits
	lent    map[string]*limits // by grant
	days    map[string]*usage  // by organization
	calls   []numbered         // admitted
}

// A numbered is a call with its number in its subgroup, and what a minute of it
// costs.
type numbered struct {
	control.Call
	n    int64
	cost float64
}

// hold locks what orders count in, and reads what is in use. Locks are taken from
// the wide to the narrow, each kind in the order of ids, so that orders wait for
// each other and never in a circle.
//
// It begins the transaction.
func hold(ctx context.Context, conn *pgxpool.Conn, all []*entry) (*ledger, error) {
	l := &ledger{numbers: map[string]placed{}, own: map[string]*limits{}, lent: map[string]*limits{}, days: map[string]*usage{}}
	zones := map[string]string{}
	most := map[string]int{}
	for _, e := range all {
		r := e.found.route
		most[r.id] = max(most[r.id], r.limits.concurrent)
		if e.found.caps != (Caps{}) {
			zones[e.org] = e.found.zone
		}
		if r.grant.id != "" {
			l.lent[r.grant.id] = &limits{}
		}
	}
	orgs, grants, subgroups := slices.Sorted(maps.Keys(zones)), slices.Sorted(maps.Keys(l.lent)), slices.Sorted(maps.Keys(most))
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	// One tenant's row that somebody holds must not stop the orders of all.
	batch.Queue("SET LOCAL lock_timeout = '200ms'")
	if len(orgs) > 0 {
		batch.Queue("SELECT FROM organizations WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", orgs)
	}
	if len(grants) > 0 {
		batch.Queue("SELECT FROM grants WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", grants)
	}
	l.queueLoads(batch, subgroups, most)
	if len(grants) > 0 {
		batch.Queue(lentSQL, grants).Query(func(rows pgx.Rows) error {
			var id string
			var in limits
			_, err := pgx.ForEachRow(rows, []any{&id, &in.concurrent, &in.perMinute}, func() error { *l.lent[id] = in; return nil })
			return err
		})
	}
	for _, org := range orgs {
		day := &usage{}
		l.days[org] = day
		batch.Queue(usageSQL, org, zones[org]).QueryRow(func(row pgx.Row) error {
			return row.Scan(&day.calls, &day.minutes, &day.cost, &day.left)
		})
	}
	err := conn.SendBatch(ctx, batch).Close()
	if err == nil && len(l.numbers) < len(subgroups) { // the first calls of some
		batch = &pgx.Batch{}
		batch.Queue(firstSQL, subgroups)
		l.queueLoads(batch, subgroups, most)
		err = conn.SendBatch(ctx, batch).Close()
	}
	if err != nil {
		if broken, ok := errors.AsType[*pgconn.PgError](err); ok && broken.Code == "23503" && len(subgroups) == 1 { // of the count to its subgroup
			return nil, errors.Join(control.Refuse(control.CodeSubgroupNotFound, "the subgroup is gone"), err)
		}
		return nil, held(fmt.Errorf("subgroup limits: %w", err))
	}
	return l, nil
}

// held adds what who ordered is told where somebody else holds a row for too long.
func held(err error) error {
	if broken, ok := errors.AsType[*pgconn.PgError](err); !ok || broken.Code != "55P03" {
		return err
	}
	return errors.Join(&control.Error{
		Code: control.CodeVoiceBackend, Message: "the organization's limits are being changed; repeat the request with the same Idempotency-Key",
		RetryAfter: time.Second,
	}, err)
}

func (l *ledger) queueLoads(batch *pgx.Batch, subgroups []string, most map[string]int) {
	batch.Queue(holdSQL, subgroups).Query(func(rows pgx.Rows) error {
		var id string
		var last placed
		_, err := pgx.ForEachRow(rows, []any{&id, &last.n, &last.at}, func() error { l.numbers[id] = last; return nil })
		return err
	})
	bounds := make([]int, len(subgroups))
	for n, id := range subgroups {
		bounds[n] = most[id]
	}
	batch.Queue(loadSQL, subgroups, bounds).Query(func(rows pgx.Rows) error {
		var id string
		var in limits
		_, err := pgx.ForEachRow(rows, []any{&id, &in.concurrent, &in.perMinute}, func() error { l.own[id] = &limits{in.concurrent, in.perMinute}; return nil })
		return err
	})
}

// admit holds an order to the limits of its subgroup, its grant and its
// organization, and queues its call; or says what is against it.
func (l *ledger) admit(batch *pgx.Batch, e *entry) (err error) {
	r := e.found.route
	own, lent, day := l.own[r.id], l.lent[r.grant.id], l.days[e.org]
	if own == nil { // it went as its count began
		return control.Refuse(control.CodeSubgroupNotFound, "the subgroup is gone")
	}
	if lent == nil {
		lent = &limits{}
	}
	if day == nil {
		day = &usage{}
	}
	if err = r.room(*own, *lent); err != nil {
		return err
	}
	if err = e.found.caps.room(*day); err != nil {
		return err
	}
	// Those that come together are a microsecond apart, so that they are dialled
	// as they came.
	p := placed{l.numbers[r.id].n + 1, l.numbers[r.id].at.Add(time.Microsecond)}
	if e.call, err = e.found.call(e.org, e.order, e.from, p); err != nil {
		return err
	}
	queued := batch.Len()
	if e.also != nil {
		if err = e.also(batch, e.call); err != nil {
			batch.QueuedQueries = batch.QueuedQueries[:queued]
			return err
		}
	}
	l.numbers[r.id] = p
	l.calls = append(l.calls, numbered{e.call, p.n, r.settings.Rate(e.call.To)})
	for _, in := range []*limits{own, lent} {
		in.concurrent++
		in.perMinute++
	}
	day.calls++
	return nil
}

// queueCalls registers the calls and their attempts, and keeps the last numbers.
func (l *ledger) queueCalls(batch *pgx.Batch) {
	batch.Queue(callsSQL, group.Column(l.calls, func(c numbered) string { return c.ID }), group.Column(l.calls, func(c numbered) string { return c.OrgID }),
		group.Column(l.calls, func(c numbered) string { return c.AgentID }), group.Column(l.calls, func(c numbered) string { return c.AgentName }),
		group.Column(l.calls, func(c numbered) int { return c.AgentVersion }),
		group.Column(l.calls, func(c numbered) string { return c.To }), group.Column(l.calls, func(c numbered) string { return c.From }),
		group.Column(l.calls, func(c numbered) string { return c.DialNumber }), group.Column(l.calls, func(c numbered) string { return c.TrunkID }),
		group.Column(l.calls, func(c numbered) string { return c.RouteID }), group.Column(l.calls, func(c numbered) string { return c.ExternalID }),
		group.Column(l.calls, func(c numbered) string { return c.Name }), group.Column(l.calls, func(c numbered) map[string]any { return c.Metadata }),
		group.Column(l.calls, func(c numbered) map[string]any { return c.Variables }),
		group.Column(l.calls, func(c numbered) int { return int(c.RingFor / time.Second) }),
		group.Column(l.calls, func(c numbered) int { return int(c.MaxDuration / time.Second) }),
		group.Column(l.calls, func(c numbered) string { return c.Voicemail }), group.Column(l.calls, func(c numbered) time.Time { return c.CreatedAt }),
		group.Column(l.calls, func(c numbered) string { return string(c.RecordingStatus) }),
		group.Column(l.calls, func(c numbered) int64 { return c.n }), group.Column(l.calls, func(c numbered) float64 { return c.cost }),
		group.Column(l.calls, func(c numbered) string { return c.Disclosure }),
		group.Column(l.calls, func(c numbered) string { return control.NewID("att_", c.CreatedAt) }))
}

// callsSQL registers calls, their attempts, and the numbers that they have used.
const callsSQL = `
WITH asked AS (
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
		$11::text[], $12::text[], $13::json[], $14::json[], $15::int[], $16::int[], $17::text[], $18::timestamptz[], $19::text[], $20::bigint[],
		$21::float8[], $22::text[], $23::text[])
	AS x (id, org_id, agent_id, agent_name, agent_version, to_number, from_number, dial_number, trunk_id, route_id,
		external_id, name, metadata, variables, ring, longest, voicemail, at, recording, n,
		cost, disclosure, attempt_id)
), call AS (
	INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number,
		dial_number, trunk_id, route_id, external_id, attempt, name, metadata, variables, ring_seconds,
		max_duration_seconds, voicemail, created_at, recording_status, analysis_status, route_n, cost_per_minute, disclosure)
	SELECT id, org_id, 'phone', 'queued', agent_id, agent_name, agent_version, to_number, from_number,
		dial_number, trunk_id, route_id, nullif(external_id, ''), 1, name, metadata, variables, ring,
		longest, voicemail, at, recording, 'none', n, cost, disclosure
	FROM asked
), counted AS (
	UPDATE subgroup_counts c SET registered = x.n, last_at = x.at
	FROM (SELECT route_id, max(n) AS n, max(at) AS at FROM asked GROUP BY route_id) x WHERE c.subgroup_id = x.route_id
)
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, created_at)
SELECT attempt_id, id, org_id, trunk_id, route_id, 1, at FROM asked`
