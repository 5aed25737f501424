package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/store"
)

// Caps limit the calls of an organization per day and per month in its time zone; 0 means no limit.
type Caps struct {
	Calls   int     `json:"daily_calls"`
	Minutes int     `json:"daily_minutes"`
	Cost    float64 `json:"daily_cost"`
	Monthly float64 `json:"monthly_cost"`
}

// callNumber is the sequence number of a call in its subgroup, and the time at which the call was registered.
type callNumber struct {
	n  int64
	at time.Time
}

// createCountersSQL inserts a row into subgroup_counts for each subgroup that has none.
const createCountersSQL = `
INSERT INTO subgroup_counts (subgroup_id, registered, last_at) SELECT id, 0, clock_timestamp() FROM unnest($1::text[]) AS x (id) ORDER BY id
ON CONFLICT DO NOTHING`

// lockCountersSQL locks the counters of subgroups until the transaction ends. It writes nothing on purpose: if a
// transaction writes a row twice, Postgres checks the row's foreign key, which would lock the subgroup.
const lockCountersSQL = `
WITH held AS (SELECT subgroup_id, registered, last_at FROM subgroup_counts WHERE subgroup_id = ANY ($1) ORDER BY subgroup_id FOR NO KEY UPDATE)
SELECT subgroup_id, registered, greatest(last_at, clock_timestamp()) FROM held`

// subgroupUsageSQL counts the calls of locked subgroups: active calls up to the limit $2, and calls of the last
// minute. The sequence numbers of the oldest active call and the newest call give an upper bound for the active calls.
// It counts active calls one by one only if that bound reaches the limit.
const subgroupUsageSQL = `
SELECT x.id, CASE WHEN b.most < x.most THEN b.most ELSE
         (SELECT count(*) FROM (SELECT FROM calls WHERE route_id = x.id AND status IN ('queued', 'ringing', 'ongoing') LIMIT x.most) y) END,
       b.recent
FROM unnest($1::text[], $2::int[]) AS x (id, most), LATERAL (SELECT
    coalesce(c.registered + 1 - (SELECT route_n FROM calls WHERE route_id = x.id AND status IN ('queued', 'ringing', 'ongoing') ORDER BY route_n LIMIT 1), 0) AS most,
    coalesce(c.registered + 1 - (SELECT route_n FROM calls WHERE route_id = x.id AND created_at > greatest(c.last_at, statement_timestamp()) - interval '1 minute' ORDER BY created_at LIMIT 1), 0) AS recent
  FROM subgroup_counts c WHERE c.subgroup_id = x.id OFFSET 0) b`

// grantUsageSQL counts the active calls, and the calls of the last minute, of all subgroups of each grant.
const grantUsageSQL = `
SELECT x.id, (SELECT count(*) FROM calls WHERE route_id = ANY (s.ids) AND status IN ('queued', 'ringing', 'ongoing')),
       (SELECT count(*) FROM calls WHERE route_id = ANY (s.ids) AND created_at > clock_timestamp() - interval '1 minute')
FROM unnest($1::text[]) AS x (id), LATERAL (SELECT array_agg(id) AS ids FROM subgroups WHERE grant_id = x.id) s`

// checkLimits refuses a call if the subgroup or the grant has reached a limit.
func (r route) checkLimits(own, lent limits) error {
	full := func(used, limit int) bool { return limit > 0 && used >= limit }
	l, most := r.grant.limits, r.effectiveLimits()
	switch {
	case own.concurrent >= most.concurrent, full(lent.concurrent, l.concurrent):
		return control.Refuse(control.CodeSubgroupConcurrency, "the subgroup reached its limit of concurrent calls")
	case own.perMinute >= most.perMinute, full(lent.perMinute, l.perMinute):
		return &control.Error{
			Code: control.CodeSubgroupRate, Message: "the subgroup reached its limit of calls per minute", RetryAfter: time.Minute,
		}
	}
	return nil
}

// usage describes how much an organization has used since the start of the day or the month.
type usage struct {
	calls   int
	minutes float64
	left    time.Duration // until the day ends

	today, month pricing.Amount // cost of ended calls
	live         int            // number of queued and running calls
	recent       RecentCosts
	monthLeft    time.Duration // time until the month ends
	isLeg        bool          // the request is for another leg of a running call
}

// usageSQL sums the calls of the current day in the organization's time zone. A running call counts with its duration
// so far.
const usageSQL = `
SELECT count(c.seconds), coalesce(sum(c.seconds), 0) / 60, (d.midnight + interval '1 day') AT TIME ZONE $2 - clock_timestamp()
FROM (SELECT date_trunc('day', clock_timestamp() AT TIME ZONE $2) AS midnight) d
LEFT JOIN LATERAL (
    SELECT coalesce(extract(epoch FROM coalesce(ended_at, clock_timestamp()) - answered_at), 0)::float8 AS seconds
    FROM calls WHERE org_id = $1 AND created_at >= d.midnight AT TIME ZONE $2
) c ON true GROUP BY d.midnight`

// costsSQL sums the costs of the current day and month in the organization's time zone. A call belongs to the time at
// which it was registered.
//
//nolint:gochecknoglobals // made once
var costsSQL = `
SELECT coalesce(t.today, 0)::bigint, coalesce(t.month, 0)::bigint,
       (SELECT count(*) FROM calls WHERE org_id = $1 AND status IN ('queued', 'ringing', 'ongoing')), r.calls, r.sum, r.largest,
       (d.midnight + interval '1 day') AT TIME ZONE $2 - clock_timestamp(),
       extract(epoch FROM (d.first + interval '1 month') AT TIME ZONE $2 - clock_timestamp())::float8
FROM (SELECT date_trunc('day', x) AS midnight, date_trunc('month', x) AS first FROM (SELECT clock_timestamp() AT TIME ZONE $2) n (x)) d,
LATERAL (SELECT sum(cost_nano) FILTER (WHERE slot >= d.midnight AT TIME ZONE $2) AS today, sum(cost_nano) AS month
         FROM cost_tallies WHERE owner = $1 AND slot >= d.first AT TIME ZONE $2) t, ` + RecentCostsSQL("org_id = $1") + ` r`

// batchQuerier is a pool or a transaction.
type batchQuerier interface {
	db.Querier
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// queueUsage adds the queries that the caps need to a batch. Their results are stored in u.
func (c Caps) queueUsage(batch *pgx.Batch, u *usage, org, zone string) {
	if c.Calls > 0 || c.Minutes > 0 {
		batch.Queue(usageSQL, org, zone).QueryRow(func(row pgx.Row) error { return row.Scan(&u.calls, &u.minutes, &u.left) })
	}
	if c.Cost > 0 || c.Monthly > 0 {
		batch.Queue(costsSQL, org, zone).QueryRow(func(row pgx.Row) error {
			var month float64 // in seconds; not an interval, because "1 month" has no fixed length
			err := row.Scan(&u.today, &u.month, &u.live, &u.recent.Calls, &u.recent.Sum, &u.recent.Largest, &u.left, &month)
			u.monthLeft = time.Duration(month * float64(time.Second))
			return err
		})
	}
}

// blockersSQL reads whether a channel is missing and whether pacing delays the subgroup's next call. It also reads the
// organization's caps and time zone.
const blockersSQL = `
SELECT live.own >= s.concurrent_calls OR t.concurrent_calls > 0 AND live.trunk >= t.concurrent_calls OR coalesce(g.concurrent_calls > 0 AND live.lent >= g.concurrent_calls, false),
       ` + store.EvenlyDueAt + ` > clock_timestamp(), coalesce(o.settings -> 'limits', '{}'), o.timezone
FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id JOIN organizations o ON o.id = s.org_id, LATERAL (
	SELECT coalesce(sum(n) FILTER (WHERE x.subgroup_id = s.id), 0) AS own, coalesce(sum(n), 0) AS trunk, coalesce(sum(n) FILTER (WHERE x.org_id = s.org_id), 0) AS lent
	FROM channel_counts x WHERE x.trunk_id = t.id) live
WHERE s.id = $1 AND s.org_id = $2`

// DialBlockers returns the reasons why the next call of a subgroup cannot be dialed now: channels, pacing, or caps of
// the organization. For a deleted subgroup it returns nothing.
func DialBlockers(ctx context.Context, q batchQuerier, org, route string) (reasons []control.Code, err error) {
	var noChannel, paced bool
	var caps Caps
	var zone string
	err = q.QueryRow(ctx, blockersSQL, route, org).Scan(&noChannel, &paced, &caps, &zone)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("limits of %s: %w", route, err)
	}
	if noChannel {
		reasons = append(reasons, control.CodeSubgroupConcurrency)
	}
	if paced {
		reasons = append(reasons, control.CodeSubgroupRate)
	}
	err = caps.checkNow(ctx, q, org, zone, false)
	switch code := control.CodeOf(err); {
	case code == control.CodeOrganizationLimit || code == control.CodeOrganizationBudget:
		reasons = append(reasons, code)
	case err != nil:
		return nil, fmt.Errorf("limits of %s: %w", org, err)
	}
	return reasons, nil
}

// checkNow refuses a call, or another leg of a running call, if the organization has reached a cap.
func (c Caps) checkNow(ctx context.Context, q batchQuerier, org, zone string, isLeg bool) error {
	if c == (Caps{}) {
		return nil
	}
	if isLeg {
		c.Calls = 0 // the call of the leg is counted already
	}
	u := usage{isLeg: isLeg}
	batch := &pgx.Batch{}
	c.queueUsage(batch, &u, org, zone)
	if err := q.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return c.check(u)
}

// check refuses a call if a cap has been reached, or if the expected cost of the call would exceed a cap.
func (c Caps) check(u usage) error {
	today, month := u.spending(c.Cost, u.today), u.spending(c.Monthly, u.month)
	refuse := func(code control.Code, text string, wait time.Duration) error {
		return &control.Error{Code: code, Message: text, RetryAfter: max(wait, time.Second)}
	}
	daily := func(what string, wait time.Duration) error {
		return refuse(control.CodeOrganizationLimit, "the organization reached its daily "+what+" limit", wait)
	}
	switch {
	case c.Calls > 0 && u.calls >= c.Calls:
		return daily("call", u.left)
	case c.Minutes > 0 && u.minutes >= float64(c.Minutes):
		return daily("minute", u.left)
	case !u.fits(today):
		return daily("cost", today.wait(u.left))
	case !u.fits(month):
		return refuse(control.CodeOrganizationBudget, "the organization reached its monthly cost limit", month.wait(u.monthLeft))
	default:
		return nil
	}
}

// spending returns how much of a limit is used. limit is in currency units; 0 means no limit.
func (u usage) spending(limit float64, spent pricing.Amount) Spending {
	s := Spending{Budget: pricing.Round(limit), Spent: spent, Calls: u.live}
	s.Expected = u.recent.Expected(s.Budget, RecentCosts{})
	return s
}

// fits reports whether a budget allows the call or leg. The call of a leg is counted already.
func (u usage) fits(s Spending) bool {
	if u.isLeg {
		return !s.IsUsedUp()
	}
	return s.Allows()
}

// wait returns how long to wait before a retry: left, the time until the period ends, or at most 30 s if running calls
// hold the rest of the budget.
func (s Spending) wait(left time.Duration) time.Duration {
	if s.isShort() {
		return left
	}
	return min(left, 30*time.Second)
}
