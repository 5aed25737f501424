package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/store"
)

// Caps limit the calls of an organization per day in its time zone; 0 means no limit.
type Caps struct {
	Calls   int     `json:"daily_calls"`
	Minutes int     `json:"daily_minutes"`
	Cost    float64 `json:"daily_cost"`
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
// minute. The difference between the numbers of the oldest active call and the newest call is an upper bound for the
// active calls. The calls are counted one by one only if that bound reaches the limit.
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

// usage is the sum of an organization's calls since the start of the day.
type usage struct {
	calls         int
	minutes, cost float64
	left          time.Duration // time until the day ends
}

// usageSQL sums the calls of the present day in the organization's time zone. A running call counts with its duration
// so far.
const usageSQL = `
SELECT count(c.seconds), coalesce(sum(c.seconds), 0) / 60, coalesce(sum(c.seconds / 60 * c.cost_per_minute), 0),
       (d.midnight + interval '1 day') AT TIME ZONE $2 - clock_timestamp()
FROM (SELECT date_trunc('day', clock_timestamp() AT TIME ZONE $2) AS midnight) d
LEFT JOIN LATERAL (
    SELECT cost_per_minute, coalesce(extract(epoch FROM coalesce(ended_at, clock_timestamp()) - answered_at), 0)::float8 AS seconds
    FROM calls WHERE org_id = $1 AND created_at >= d.midnight AT TIME ZONE $2
) c ON true GROUP BY d.midnight`

// blockersSQL reports, for a subgroup, its trunk and its grant, whether no channel is free. It also reports whether
// pacing delays the subgroup's next call.
const blockersSQL = `
SELECT live.own >= s.concurrent_calls OR t.concurrent_calls > 0 AND live.trunk >= t.concurrent_calls OR coalesce(g.concurrent_calls > 0 AND live.lent >= g.concurrent_calls, false),
       ` + store.EvenlyDueAt + ` > clock_timestamp(), coalesce(o.settings -> 'limits', '{}'), o.timezone
FROM subgroups s JOIN trunks t ON t.id = s.trunk_id LEFT JOIN grants g ON g.id = s.grant_id JOIN organizations o ON o.id = s.org_id, LATERAL (
	SELECT count(*) FILTER (WHERE x.subgroup_id = s.id) AS own, count(*) AS trunk, count(*) FILTER (WHERE x.org_id = s.org_id) AS lent
	FROM attempts x WHERE x.trunk_id = t.id AND x.state IN ` + store.ActiveStates + `) live
WHERE s.id = $1 AND s.org_id = $2`

// DialBlockers returns the reasons why the next call of a subgroup cannot be dialed now: channels, pacing, or daily
// caps. For a deleted subgroup it returns nothing.
func DialBlockers(ctx context.Context, q db.Querier, org, route string) (reasons []control.Code, err error) {
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
	switch err = caps.checkToday(ctx, q, org, zone); {
	case control.CodeOf(err) == control.CodeOrganizationLimit:
		reasons = append(reasons, control.CodeOrganizationLimit)
	case err != nil:
		return nil, fmt.Errorf("limits of %s: %w", org, err)
	}
	return reasons, nil
}

// checkToday refuses a call if a cap has been reached today.
func (c Caps) checkToday(ctx context.Context, q db.Querier, org, zone string) error {
	if c == (Caps{}) {
		return nil
	}
	var day usage
	if err := q.QueryRow(ctx, usageSQL, org, zone).Scan(&day.calls, &day.minutes, &day.cost, &day.left); err != nil {
		return err
	}
	return c.check(day)
}

// check refuses a call if the usage of the day has reached a cap.
func (c Caps) check(day usage) error {
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
		Code: control.CodeOrganizationLimit, Message: "the organization reached its daily limit of " + what,
		RetryAfter: max(day.left, time.Second),
	}
}
