package watch

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/breaker"
	"github.com/parley-voice/parley/control/metrics"
)

// callsAtMost bounds the calls of a route that are looked at: of those that are
// being dialled nothing is known yet.
const callsAtMost = 400

// routesSQL has the routes that campaigns call through, or that are shut: how
// their breaker stands, and what is known of their last calls. It looks at a
// bounded number of calls of each, from the newest on.
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
		WHERE says <> '' LIMIT $5) told
) v
CROSS JOIN LATERAL (
	SELECT coalesce(bool_and(down), false) AS down FROM trunk_sights s
	WHERE s.trunk_id = r.trunk_id AND s.at > greatest($1::timestamptz - $6::interval, CASE WHEN b.open THEN '-infinity' ELSE b.since END)
) s
ORDER BY r.id`

// A route is one, as it was found.
type route struct {
	id, trunk string
	state     breaker.State
	call      string // the probe
	seen      breaker.Seen
}

// routes finds them.
func (w *Watch) routes(ctx context.Context, tx pgx.Tx, now time.Time) ([]route, error) {
	r := w.Rules
	found, err := tx.Query(ctx, routesSQL, now, breaker.Faults(), r.Window, callsAtMost, r.Most, sightLasts)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (x route, err error) {
		var status, reason string
		var code int
		var rang bool
		var since, probeAt *time.Time
		s, v := &x.state, &x.seen
		err = row.Scan(&x.id, &x.trunk, &s.Open, &s.Why, &since, &s.Wait, &probeAt, &x.call, &v.Good, &v.Bad, &v.Unreachable,
			&status, &reason, &code, &rang)
		s.Since, s.ProbeAt = or(since), or(probeAt)
		if x.call != "" {
			s.Probing, v.Probe = true, probe(status, reason, code, rang)
		}
		return x, err
	})
}

// probe is how it stands with a call that tries a route; an empty status is a
// call that is gone.
func probe(status, reason string, code int, rang bool) breaker.Probe {
	switch {
	case rang:
		return breaker.Passed
	case status == "queued" || status == "ringing" || status == "ongoing":
		return breaker.On
	case status == "failed" && breaker.Fault(reason, code, rang):
		return breaker.Failed
	case status == "failed" && breaker.Reached(reason, code, rang):
		return breaker.Passed
	default:
		return breaker.Gone
	}
}

// step keeps what follows of what is seen.
func (w *Watch) step(ctx context.Context, tx pgx.Tx, now time.Time) error {
	all, err := w.routes(ctx, tx, now)
	if err != nil {
		return err
	}
	states := map[string]string{}
	defer func() { w.show(states) }()
	for _, x := range all {
		next := w.Rules.Step(now, x.state, x.seen)
		states[x.id] = named(next)
		if next == x.state {
			continue
		}
		call := ""
		if next.Probing {
			call = x.call
		}
		// A probe that began since the route was read is the next look's.
		_, err = tx.Exec(ctx, `
			INSERT INTO route_breakers AS b (subgroup_id, open, why, since, wait, probe_at, probe_call)
			SELECT id, $2, $3, $4, $5, $6, $7 FROM subgroups WHERE id = $1
			ON CONFLICT (subgroup_id) DO UPDATE SET open = excluded.open, why = excluded.why, since = excluded.since, wait = excluded.wait,
				probe_at = excluded.probe_at, probe_call = excluded.probe_call
			WHERE b.probe_call = $8`, x.id, next.Open, next.Why, orNull(next.Since), next.Wait, orNull(next.ProbeAt), call, x.call)
		if err != nil {
			return fmt.Errorf("route %s: %w", x.id, err)
		}
		w.say(ctx, x, next)
	}
	_, err = tx.Exec(ctx, "DELETE FROM trunk_sights WHERE at < $1::timestamptz - interval '1 minute'", now)
	return err
}

// say logs what an operator may have to look after.
func (w *Watch) say(ctx context.Context, x route, next breaker.State) {
	switch {
	case w.Log == nil:
	case next.Open && !x.state.Open:
		w.Log.WarnContext(ctx, "campaigns do not call through a route any more", "route", x.id, "trunk", x.trunk, "why", string(next.Why),
			"failed", x.seen.Bad, "of", x.seen.Good+x.seen.Bad)
	case !next.Open && x.state.Open:
		w.Log.InfoContext(ctx, "campaigns call through a route again", "route", x.id, "trunk", x.trunk)
	}
}

// or is an instant, the zero time where there is none; orNull is the reverse.
func or(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// named is a breaker's state, as the figures have it.
func named(s breaker.State) string {
	switch {
	case !s.Open:
		return metrics.RouteClosed
	case s.Probing:
		return metrics.RouteProbing
	default:
		return metrics.RouteOpen
	}
}
