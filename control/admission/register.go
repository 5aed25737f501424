package admission

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
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/control/store"
)

// Orders that arrive while a check runs are checked together afterwards, without an added delay. One transaction
// registers all checked orders that wait.
const (
	maxLookups       = 192 // orders that are checked or wait for the check
	registerInterval = 4 * time.Millisecond
	maxRegistered    = 64  // orders per transaction
	maxWriting       = 256 // orders that are registered or wait for it
)

// entry is a checked order and the call that it becomes.
type entry struct {
	org   string
	order Order
	found resolution
	from  string
	also  InTx
	call  control.Call
}

// init sets up the limiters and groups at the first call.
func (d *Controller) init() {
	d.once.Do(func() {
		d.checkLimit.Max, d.writeLimit.Max = maxLookups, maxWriting
		d.lookups = groupcommit.Group[*lookup]{Write: d.find, Timeout: 5 * time.Second, IsItemError: store.IsRowError}
		d.writes = groupcommit.Group[*entry]{
			Write: d.register, MaxItems: maxRegistered, MinInterval: registerInterval, Timeout: 5 * time.Second, IsItemError: store.IsRowError,
			Wait: true, // until the transaction ends, the order keeps its limiter place and idempotency key
		}
	})
}

// register registers the calls of several orders in one transaction. For each refused order it returns an error.
func (d *Controller) register(ctx context.Context, all []*entry) (each []error, err error) {
	err = d.orderPool().AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		// The pool closes a connection that is returned inside a transaction.
		l, fault := beginRegistration(ctx, conn, all)
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
		if d.Notify == nil {
			batch.Queue("SELECT pg_notify($1, '')", store.ChannelQueue)
		}
		batch.Queue("COMMIT")
		if fault = conn.SendBatch(ctx, batch).Close(); fault != nil {
			return errors.Join(withRetryHint(fmt.Errorf("register calls: %w", fault)), rollback(ctx, conn))
		}
		return nil
	})
	return each, err
}

// rollback ends the transaction, so that the connection can be used again.
func rollback(ctx context.Context, conn *pgxpool.Conn) error {
	if conn.Conn().IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, "ROLLBACK")
	return err
}

// registration tracks the usage of subgroups, grants and organizations while orders are registered.
type registration struct {
	numbers map[string]callNumber // last call of each subgroup
	own     map[string]*limits
	lent    map[string]*limits // usage of each grant
	days    map[string]*usage  // usage of each organization
	calls   []store.CallRow    // admitted calls
}

// beginRegistration begins the transaction, locks the counters of the orders, and reads their usage. It locks
// organizations first and subgroups last, and rows of one table by id, so that orders cannot deadlock.
func beginRegistration(ctx context.Context, conn *pgxpool.Conn, all []*entry) (*registration, error) {
	l := &registration{numbers: map[string]callNumber{}, own: map[string]*limits{}, lent: map[string]*limits{}, days: map[string]*usage{}}
	limited := map[string]orgLimits{}
	most := map[string]int{}
	for _, e := range all {
		r := e.found.route
		most[r.id] = max(most[r.id], r.limits.concurrent)
		if e.found.caps != (Caps{}) {
			limited[e.org] = e.found.orgLimits
		}
		if r.grant.id != "" {
			l.lent[r.grant.id] = &limits{}
		}
	}
	orgs, grants, subgroups := slices.Sorted(maps.Keys(limited)), slices.Sorted(maps.Keys(l.lent)), slices.Sorted(maps.Keys(most))
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	// A row that one organization has locked must not block the orders of other organizations for long.
	batch.Queue("SET LOCAL lock_timeout = '200ms'")
	if len(orgs) > 0 {
		batch.Queue("SELECT FROM organizations WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", orgs)
	}
	if len(grants) > 0 {
		batch.Queue("SELECT FROM grants WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", grants)
	}
	queueRevertCheck(batch)
	l.queueLoads(batch, subgroups, most)
	if len(grants) > 0 {
		batch.Queue(grantUsageSQL, grants).Query(func(rows pgx.Rows) error {
			var id string
			var in limits
			_, err := pgx.ForEachRow(rows, []any{&id, &in.concurrent, &in.perMinute}, func() error { *l.lent[id] = in; return nil })
			return err
		})
	}
	for _, org := range orgs {
		l.days[org] = &usage{}
		limited[org].caps.queueUsage(batch, l.days[org], org, limited[org].zone)
	}
	err := conn.SendBatch(ctx, batch).Close()
	if err == nil && len(l.numbers) < len(subgroups) { // some subgroups have no counter yet
		batch = &pgx.Batch{}
		batch.Queue(createCountersSQL, subgroups)
		l.queueLoads(batch, subgroups, most)
		err = conn.SendBatch(ctx, batch).Close()
	}
	if err != nil {
		if broken, ok := errors.AsType[*pgconn.PgError](err); ok && broken.Code == "23503" &&
			len(subgroups) == 1 { // the counter's foreign key refers to the subgroup
			return nil, errors.Join(control.Refuse(control.CodeSubgroupNotFound, "the subgroup was deleted"), err)
		}
		return nil, withRetryHint(fmt.Errorf("subgroup limits: %w", err))
	}
	return l, nil
}

// queueRevertCheck refuses orders after the database reverted to an older state, until the nodes have restored their
// calls. Until then the database may have lost an earlier call of the same order.
func queueRevertCheck(batch *pgx.Batch) {
	batch.Queue("SELECT dialing_since() IS NULL").QueryRow(func(row pgx.Row) error {
		var paused bool
		if err := row.Scan(&paused); err != nil || !paused {
			return err
		}
		return &control.Error{
			Code: control.CodeVoiceBackend, RetryAfter: 5 * time.Second,
			Message: "calls are being restored after a database failover; repeat the request with the same Idempotency-Key",
		}
	})
}

// withRetryHint turns a lock timeout into an API error that asks the client to retry.
func withRetryHint(err error) error {
	if broken, ok := errors.AsType[*pgconn.PgError](err); !ok || broken.Code != "55P03" {
		return err
	}
	return errors.Join(&control.Error{
		Code: control.CodeVoiceBackend, Message: "the organization's limits are being changed; repeat the request with the same Idempotency-Key",
		RetryAfter: time.Second,
	}, err)
}

func (l *registration) queueLoads(batch *pgx.Batch, subgroups []string, most map[string]int) {
	batch.Queue(lockCountersSQL, subgroups).Query(func(rows pgx.Rows) error {
		var id string
		var last callNumber
		_, err := pgx.ForEachRow(rows, []any{&id, &last.n, &last.at}, func() error { l.numbers[id] = last; return nil })
		return err
	})
	bounds := make([]int, len(subgroups))
	for n, id := range subgroups {
		bounds[n] = most[id]
	}
	batch.Queue(subgroupUsageSQL, subgroups, bounds).Query(func(rows pgx.Rows) error {
		var id string
		var in limits
		_, err := pgx.ForEachRow(
			rows,
			[]any{&id, &in.concurrent, &in.perMinute},
			func() error { l.own[id] = &limits{in.concurrent, in.perMinute}; return nil },
		)
		return err
	})
}

// admit checks the limits of subgroup, grant and organization. It queues the call, or returns a refusal.
func (l *registration) admit(batch *pgx.Batch, e *entry) (err error) {
	r := e.found.route
	own, lent, day := l.own[r.id], l.lent[r.grant.id], l.days[e.org]
	if own == nil { // the subgroup was deleted while its counter was created
		return control.Refuse(control.CodeSubgroupNotFound, "the subgroup was deleted")
	}
	if lent == nil {
		lent = &limits{}
	}
	if day == nil {
		day = &usage{}
	}
	if err = r.checkLimits(*own, *lent); err != nil {
		return err
	}
	if err = e.found.caps.check(*day); err != nil {
		return err
	}
	// Registration times differ by a microsecond, so that the calls are dialed in the order of registration.
	p := callNumber{l.numbers[r.id].n + 1, l.numbers[r.id].at.Add(time.Microsecond)}
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
	l.calls = append(l.calls, store.CallRow{Call: e.call, RouteN: p.n, CostPerMinute: r.settings.Rate(e.call.To)})
	for _, in := range []*limits{own, lent} {
		in.concurrent++
		in.perMinute++
	}
	day.calls++
	day.live++
	return nil
}

// queueCalls adds the statements that insert calls and attempts and update the counters.
func (l *registration) queueCalls(batch *pgx.Batch) {
	attempts := groupcommit.Column(l.calls, func(c store.CallRow) string { return control.NewID("att_", c.CreatedAt) })
	batch.Queue(callsSQL, append([]any{attempts}, orderColumns.ArrayArgs(l.calls)...)...)
}

// orderColumns are the columns of calls that an order creates. They belong to no campaign.
//
//nolint:gochecknoglobals // read-only table
var orderColumns = store.RegisteredColumns.Except("campaign_id", "contact_id", "import_id", "opt_out").
	WriteAs("call_type", "'phone'").WriteAs("status", "'queued'").WriteAs("attempt", "1").WriteAs("analysis_status", "'none'")

// callsSQL inserts calls and attempts and updates the counters.
//
//nolint:gochecknoglobals // made once
var callsSQL = `
WITH asked AS (
	SELECT * FROM unnest(` + orderColumns.ArrayParams(2) + `, $1::text[]) AS x (` + orderColumns.ArgNames() + `, attempt_id)
), call AS (
	` + orderColumns.InsertRows("calls") + ` FROM asked
), counted AS (
	UPDATE subgroup_counts c SET registered = x.n, last_at = x.at
	FROM (SELECT route_id, max(route_n) AS n, max(created_at) AS at FROM asked GROUP BY route_id) x WHERE c.subgroup_id = x.route_id
)
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, attempt_no, created_at)
SELECT attempt_id, id, org_id, trunk_id, route_id, 1, created_at FROM asked`
