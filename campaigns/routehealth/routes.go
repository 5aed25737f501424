package routehealth

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/circuitbreaker"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
)

// maxCalls bounds the calls of a route that routesSQL examines to find enough results. Calls being dialed have no
// result yet.
const maxCalls = 400

// routesSQL returns the routes that have a running campaign or an open breaker, with the state of the breaker and the
// results of the last calls. It examines at most maxCalls calls of each route, the newest first.
const routesSQL = `
WITH route AS (
	SELECT id, trunk_id FROM subgroups
	WHERE id IN (SELECT route_id FROM campaigns WHERE status = 'running' UNION ALL SELECT subgroup_id FROM route_breakers WHERE open)
)
SELECT r.id, r.trunk_id, coalesce(b.open, false), coalesce(b.why, ''), b.since, coalesce(b.wait, '0'), b.probe_at,
	coalesce(b.probe_call, ''), v.good, v.bad, s.down,
	coalesce(p.status, ''), coalesce(p.disconnection_reason, ''), coalesce(p.sip_status, 0), p.ringing_at IS NOT NULL OR p.answered_at IS NOT NULL
FROM route r LEFT JOIN route_breakers b ON b.subgroup_id = r.id
LEFT JOIN calls p ON p.id = b.probe_call
CROSS JOIN LATERAL (
	SELECT count(*) FILTER (WHERE says = 'good') AS good, count(*) FILTER (WHERE says = 'bad') AS bad FROM (
		SELECT says FROM (
			SELECT CASE
				WHEN c.ringing_at IS NOT NULL OR c.answered_at IS NOT NULL THEN 'good'
				WHEN c.status <> 'failed' THEN ''
				WHEN c.disconnection_reason = ANY ($2) OR c.disconnection_reason = 'no_answer' AND coalesce(c.sip_status, 0) IN (0, 408) THEN 'bad'
				WHEN c.disconnection_reason IN ('busy', 'declined', 'invalid_number', 'no_answer') THEN 'good'
				ELSE '' END AS says
			FROM calls c
			WHERE c.route_id = r.id AND NOT coalesce(b.open, false) AND c.created_at > greatest($1::timestamptz - $3::interval, b.since)
			ORDER BY c.created_at DESC LIMIT $4) newest
		WHERE says <> '' LIMIT $5) counted
) v
CROSS JOIN LATERAL (
	SELECT coalesce(bool_and(down), false) AS down FROM trunk_sights s
	WHERE s.trunk_id = r.trunk_id AND s.at > greatest($1::timestamptz - $6::interval, CASE WHEN b.open THEN '-infinity' ELSE b.since END)
) s
ORDER BY r.id`

// A route is a route with its breaker and its last results.
type route struct {
	id, trunk string
	state     circuitbreaker.State
	call      string // ID of the probe call
	seen      circuitbreaker.Observation
}

func (m *Monitor) routes(ctx context.Context, tx pgx.Tx, now time.Time) ([]route, error) {
	r := m.Rules
	return db.Collect(ctx, tx, "routes", func(row pgx.CollectableRow) (x route, err error) {
		var status, reason string
		var code int
		var rang bool
		var since, probeAt *time.Time
		s, v := &x.state, &x.seen
		err = row.Scan(&x.id, &x.trunk, &s.Open, &s.Why, &since, &s.Wait, &probeAt, &x.call, &v.Good, &v.Bad, &v.Unreachable,
			&status, &reason, &code, &rang)
		s.Since, s.ProbeAt = timeOrZero(since), timeOrZero(probeAt)
		if x.call != "" {
			s.Probing, v.Probe = true, probeResult(status, reason, code, rang)
		}
		return x, err
	}, routesSQL, now, circuitbreaker.RouteFaults(), r.Window, maxCalls, r.MaxCalls, reportLasts)
}

// probeResult returns the result of a probe; an empty status means that the call was deleted.
func probeResult(status, reason string, code int, rang bool) circuitbreaker.Probe {
	switch {
	case rang:
		return circuitbreaker.Passed
	case status == "queued" || status == "ringing" || status == "ongoing":
		return circuitbreaker.On
	case status == "failed" && circuitbreaker.IsRouteFault(reason, code, rang):
		return circuitbreaker.Failed
	case status == "failed" && circuitbreaker.IsReached(reason, code, rang):
		return circuitbreaker.Passed
	default:
		return circuitbreaker.Gone
	}
}

func (m *Monitor) stepRoutes(ctx context.Context, tx pgx.Tx, now time.Time) error {
	all, err := m.routes(ctx, tx, now)
	if err != nil {
		return err
	}
	states := map[string]string{}
	defer func() { m.setStates(states) }()
	for _, x := range all {
		next := m.Rules.Step(now, x.state, x.seen)
		states[x.id] = stateName(next)
		if next == x.state {
			continue
		}
		call := ""
		if next.Probing {
			call = x.call
		}
		// A probe that began after the route was read is handled by the next step.
		_, err = tx.Exec(ctx, `
			INSERT INTO route_breakers AS b (subgroup_id, open, why, since, wait, probe_at, probe_call)
			SELECT id, $2, $3, $4, $5, $6, $7 FROM subgroups WHERE id = $1
			ON CONFLICT (subgroup_id) DO UPDATE SET open = excluded.open, why = excluded.why, since = excluded.since, wait = excluded.wait,
				probe_at = excluded.probe_at, probe_call = excluded.probe_call
			WHERE b.probe_call = $8`, x.id, next.Open, next.Why, nullTime(next.Since), next.Wait, nullTime(next.ProbeAt), call, x.call)
		if err != nil {
			return fmt.Errorf("route %s: %w", x.id, err)
		}
		m.logChange(ctx, x, next)
	}
	return nil
}

func (m *Monitor) logChange(ctx context.Context, x route, next circuitbreaker.State) {
	switch {
	case m.Log == nil:
	case next.Open && !x.state.Open:
		m.Log.WarnContext(ctx, "campaigns stopped calling through a route: too many calls fail", "route", x.id, "trunk", x.trunk,
			"why", string(next.Why), "failed", x.seen.Bad, "of", x.seen.Good+x.seen.Bad)
	case !next.Open && x.state.Open:
		m.Log.InfoContext(ctx, "campaigns resumed calling through a route", "route", x.id, "trunk", x.trunk)
	}
}

// timeOrZero returns the zero time for nil; nullTime is the reverse.
func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// stateName returns the state of a breaker as the metrics name it.
func stateName(s circuitbreaker.State) string {
	switch {
	case !s.Open:
		return metrics.RouteClosed
	case s.Probing:
		return metrics.RouteProbing
	default:
		return metrics.RouteOpen
	}
}
