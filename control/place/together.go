package place

import (
	"context"
	"encoding/json"
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

// Orders that come at the same time are registered in one transaction.
const (
	ordersApart = 4 * time.Millisecond
	mostWritten = 48  // at once
	mostInLine  = 192 // that wait to be written
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

func (d *Desk) writer() *group.Group[*entry] {
	d.once.Do(func() {
		d.line.most = mostInLine
		d.write = group.Group[*entry]{Write: d.register, Most: mostWritten, Apart: ordersApart, Within: 5 * time.Second, Blames: store.OfTheRow}
	})
	return &d.write
}

// register registers the calls of orders in one transaction, and says what is
// against each of the others.
func (d *Desk) register(ctx context.Context, all []*entry) (each []error, err error) {
	err = d.Pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
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
		if len(l.counts) == 0 { // nobody was admitted
			return rollback(ctx, conn)
		}
		l.queueCounts(batch)
		if d.Ring == nil {
			batch.Queue("SELECT pg_notify($1, '')", store.BellQueue)
		}
		batch.Queue("COMMIT")
		if fault = conn.SendBatch(ctx, batch).Close(); fault != nil {
			return errors.Join(fmt.Errorf("register calls: %w", fault), rollback(ctx, conn))
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
	counts  map[string]int64   // calls admitted, by subgroup
}

// hold locks what orders count in, and reads what is in use. Locks are taken from
// the wide to the narrow, each kind in the order of ids, so that orders wait for
// each other and never in a circle.
//
// It begins the transaction.
func hold(ctx context.Context, conn *pgxpool.Conn, all []*entry) (*ledger, error) {
	l := &ledger{map[string]placed{}, map[string]*limits{}, map[string]*limits{}, map[string]*usage{}, map[string]int64{}}
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
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		if broken, ok := errors.AsType[*pgconn.PgError](err); ok && broken.Code == "23503" && len(subgroups) == 1 { // of the count to its subgroup
			return nil, errors.Join(control.Refuse(control.CodeSubgroupNotFound, "the subgroup is gone"), err)
		}
		return nil, fmt.Errorf("subgroup limits: %w", err)
	}
	return l, nil
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
	written := batch.Len()
	err = queueCall(batch, e.call, p.n, r.settings.Rate(e.call.To))
	if err == nil && e.also != nil {
		err = e.also(batch, e.call)
	}
	if err != nil {
		batch.QueuedQueries = batch.QueuedQueries[:written]
		return err
	}
	l.numbers[r.id] = p
	l.counts[r.id]++
	for _, in := range []*limits{own, lent} {
		in.concurrent++
		in.perMinute++
	}
	day.calls++
	return nil
}

// queueCounts keeps the last numbers.
func (l *ledger) queueCounts(batch *pgx.Batch) {
	ids := slices.Sorted(maps.Keys(l.counts))
	numbers, times := make([]int64, len(ids)), make([]time.Time, len(ids))
	for n, id := range ids {
		numbers[n], times[n] = l.numbers[id].n, l.numbers[id].at
	}
	batch.Queue(`
		UPDATE subgroup_counts c SET registered = x.n, last_at = x.at
		FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS x (id, n, at) WHERE c.subgroup_id = x.id`, ids, numbers, times)
}

// callSQL registers a call and its attempt.
const callSQL = `
WITH call AS (INSERT INTO calls (id, org_id, call_type, status, agent_id, agent_name, agent_version, to_number, from_number,
	dial_number, trunk_id, route_id, external_id, attempt, name, metadata, variables, ring_seconds,
	max_duration_seconds, voicemail, created_at, recording_status, analysis_status, route_n, cost_per_minute, disclosure)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, nullif($13, ''), $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $27)
RETURNING id, org_id, trunk_id, route_id, attempt)
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, created_at)
SELECT $26, id, org_id, trunk_id, route_id, attempt, $21 FROM call`

// queueCall queues a call and its attempt.
func queueCall(batch *pgx.Batch, c control.Call, n int64, cost float64) error {
	metadata, err := json.Marshal(c.Metadata)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	variables, err := json.Marshal(c.Variables)
	if err != nil {
		return fmt.Errorf("variables: %w", err)
	}
	batch.Queue(callSQL, c.ID, c.OrgID, c.Type, c.Status, c.AgentID, c.AgentName, c.AgentVersion, c.To, c.From,
		c.DialNumber, c.TrunkID, c.RouteID, c.ExternalID, c.Attempt, c.Name, metadata, variables, int(c.RingFor/time.Second),
		int(c.MaxDuration/time.Second), c.Voicemail, c.CreatedAt, c.RecordingStatus, c.AnalysisStatus, n, cost, control.NewID("att_", c.CreatedAt), c.Disclosure)
	return nil
}
