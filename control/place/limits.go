package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
)

// Caps bound what the calls of an organization may come to in a day of its
// zone; 0 is no bound.
type Caps struct {
	Calls   int     `json:"daily_calls"`
	Minutes int     `json:"daily_minutes"`
	Cost    float64 `json:"daily_cost"`
}

// A placed is a call's number in its subgroup, and when it was registered.
type placed struct {
	n  int64
	at time.Time
}

// countSQL gives the call its number. The row is the subgroup's until the
// transaction is over: the next order counts this one.
const countSQL = `
INSERT INTO subgroup_counts AS c (subgroup_id, registered, last_at) VALUES ($1, 1, clock_timestamp())
ON CONFLICT (subgroup_id) DO UPDATE SET registered = c.registered + 1, last_at = greatest(c.last_at, clock_timestamp())
RETURNING registered, last_at`

// loadSQL counts the calls of a subgroup before the one just numbered: those
// that are not over, at most $2, and those of the last minute. The numbers of
// the oldest live call and of the newest bound the first; only where that bound
// is over the limit the calls themselves are counted.
const loadSQL = `
SELECT CASE WHEN b.most < $2 THEN b.most ELSE
         (SELECT count(*) FROM (SELECT FROM calls WHERE route_id = $1 AND status IN ('queued', 'ringing', 'ongoing') LIMIT $2) x) END,
       b.recent
FROM (SELECT
    coalesce(c.registered - (SELECT route_n FROM calls WHERE route_id = $1 AND status IN ('queued', 'ringing', 'ongoing') ORDER BY route_n LIMIT 1), 0) AS most,
    coalesce(c.registered - (SELECT route_n FROM calls WHERE route_id = $1 AND created_at > c.last_at - interval '1 minute' ORDER BY created_at LIMIT 1), 0) AS recent
  FROM subgroup_counts c WHERE c.subgroup_id = $1 OFFSET 0) b`

// lentSQL counts the calls of all subgroups of a grant.
const lentSQL = `
SELECT (SELECT count(*) FROM calls WHERE route_id = ANY (s.ids) AND status IN ('queued', 'ringing', 'ongoing')),
       (SELECT count(*) FROM calls WHERE route_id = ANY (s.ids) AND created_at > clock_timestamp() - interval '1 minute')
FROM (SELECT array_agg(id) AS ids FROM subgroups WHERE grant_id = $1) s`

// register numbers the call of an order and holds it to the limits of its
// subgroup, its grant and its organization. Locks are taken from the wide to
// the narrow, so that orders wait for each other and never in a circle.
//
// It begins the transaction, which insert commits.
func register(ctx context.Context, conn *pgxpool.Conn, orgID string, f found) (p placed, err error) {
	var own, lent limits // in use
	var day usage
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	if f.caps != (Caps{}) {
		batch.Queue("SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE", orgID)
	}
	if f.route.grant.id != "" {
		batch.Queue("SELECT FROM grants WHERE id = $1 FOR NO KEY UPDATE", f.route.grant.id)
	}
	batch.Queue(countSQL, f.route.id).QueryRow(func(row pgx.Row) error { return row.Scan(&p.n, &p.at) })
	batch.Queue(loadSQL, f.route.id, f.route.limits.concurrent).QueryRow(func(row pgx.Row) error {
		return row.Scan(&own.concurrent, &own.perMinute)
	})
	if f.route.grant.id != "" {
		batch.Queue(lentSQL, f.route.grant.id).QueryRow(func(row pgx.Row) error { return row.Scan(&lent.concurrent, &lent.perMinute) })
	}
	if f.caps != (Caps{}) {
		batch.Queue(usageSQL, orgID, f.zone).QueryRow(func(row pgx.Row) error {
			return row.Scan(&day.calls, &day.minutes, &day.cost, &day.left)
		})
	}
	if err = conn.SendBatch(ctx, batch).Close(); err != nil {
		if broken, ok := errors.AsType[*pgconn.PgError](err); ok && broken.Code == "23503" { // of the count to its subgroup
			return placed{}, control.Refuse(control.CodeSubgroupNotFound, "the subgroup is gone")
		}
		return placed{}, fmt.Errorf("subgroup limits: %w", err)
	}
	if err = f.route.room(own, lent); err != nil {
		return placed{}, err
	}
	return p, f.caps.room(day)
}

// room refuses where a limit is reached: the subgroup's or the grant's,
// whichever is smaller.
func (r route) room(own, lent limits) error {
	full := func(used, limit int) bool { return limit > 0 && used >= limit }
	l, most := r.grant.limits, r.most()
	switch {
	case own.concurrent >= most.concurrent, full(lent.concurrent, l.concurrent):
		return control.Refuse(control.CodeSubgroupConcurrency, "the subgroup's concurrent calls are exhausted")
	case own.perMinute >= most.perMinute, full(lent.perMinute, l.perMinute):
		return &control.Error{Code: control.CodeSubgroupRate, Message: "the subgroup's calls per minute are exhausted", RetryAfter: time.Minute}
	}
	return nil
}

// usage is what the calls of an organization came to since the day began.
type usage struct {
	calls         int
	minutes, cost float64
	left          time.Duration // of the day
}

// usageSQL adds up a day in the organization's zone. A call that is on counts
// for what it has lasted.
const usageSQL = `
SELECT count(c.seconds), coalesce(sum(c.seconds), 0) / 60, coalesce(sum(c.seconds / 60 * c.cost_per_minute), 0),
       (d.midnight + interval '1 day') AT TIME ZONE $2 - clock_timestamp()
FROM (SELECT date_trunc('day', clock_timestamp() AT TIME ZONE $2) AS midnight) d
LEFT JOIN LATERAL (
    SELECT cost_per_minute, coalesce(extract(epoch FROM coalesce(ended_at, clock_timestamp()) - answered_at), 0)::float8 AS seconds
    FROM calls WHERE org_id = $1 AND created_at >= d.midnight AT TIME ZONE $2
) c ON true GROUP BY d.midnight`

// room refuses what would begin after a cap was reached.
func (c Caps) room(day usage) error {
	var what string
	switch {
	case c.Calls > 0 && day.calls >= c.Calls:
		what = "calls"
	case c.Minutes > 0 && day.minutes >= float64(c.Minutes):
		what = "minutes"
	case c.Cost > 0 && day.cost >= c.Cost:
		what = "cost"
	default:
		return nil
	}
	return &control.Error{
		Code: control.CodeOrganizationLimit, Message: "the organization's " + what + " of the day are exhausted", RetryAfter: max(day.left, time.Second),
	}
}
