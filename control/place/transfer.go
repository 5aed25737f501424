package place

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

// longestWait is how long a party may be kept waiting for the pacing of its
// route.
const longestWait = 5 * time.Second

// calling is a call that a node has.
type calling struct{ org, route, home string }

const callingSQL = `
SELECT c.org_id, c.route_id, a.home FROM attempts a JOIN calls c ON c.id = a.call_id
WHERE a.id = $1 AND a.owner = $2 AND a.epoch = $3 AND a.state IN ` + store.Alive

func (d *Desk) calling(ctx context.Context, q db.Querier, l control.Lease, lock string) (c calling, err error) {
	err = q.QueryRow(ctx, callingSQL+lock, l.AttemptID, l.Owner, l.Epoch).Scan(&c.org, &c.route, &c.home)
	if errors.Is(err, pgx.ErrNoRows) {
		return calling{}, control.ErrFenced
	}
	return c, err
}

// OpenLeg implements control.Legs: a second leg is held to the destinations of
// its call's subgroup, the do-not-call lists, the lines and the pace of subgroup
// and trunk, and the organization's minutes and cost of the day.
func (d *Desk) OpenLeg(ctx context.Context, l control.Lease, number string, lease time.Duration) (control.SecondLeg, error) {
	c, err := d.calling(ctx, d.Pool, l, "")
	if err != nil {
		return control.SecondLeg{}, fmt.Errorf("second leg: %w", err)
	}
	to := control.Digits(number)
	v, err := d.allowed(ctx, control.Number{OrgID: c.org, Digits: to}, control.ForTransfer)
	if err != nil {
		return control.SecondLeg{}, fmt.Errorf("second leg: do-not-call lists: %w", err)
	}
	if v.List != "" {
		return control.SecondLeg{}, control.Refuse(control.CodeDestinationNotAllowed, "the number is on a do-not-call list: "+v.List)
	}
	s := control.SecondLeg{Number: to, Lease: control.Lease{
		AttemptID: control.NewID("att_", time.Now()), CallID: l.CallID, Owner: l.Owner, Epoch: 1,
	}}
	err = db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		lane, fault := takeWay(ctx, tx, c)
		if fault != nil {
			return fault
		}
		if fault = Destination(to, lane.allowed); fault != nil {
			return fault
		}
		if _, fault = d.calling(ctx, tx, l, " FOR UPDATE OF a"); fault != nil {
			return fault
		}
		s.Dial, s.Wait = lane.prefix+to, lane.wait
		_, fault = tx.Exec(ctx, openSQL, s.Lease.AttemptID, l.CallID, c.org, lane.trunk, c.route, l.Owner, c.home, lease+lane.wait, to)
		return fault
	})
	if err != nil {
		return control.SecondLeg{}, fmt.Errorf("second leg: %w", err)
	}
	return s, nil
}

// openSQL commits the intent, on disk whatever the database does otherwise.
const openSQL = `
WITH sure AS (SELECT set_config('synchronous_commit', 'on', true))
INSERT INTO attempts (id, call_id, org_id, trunk_id, subgroup_id, state, owner, home, epoch, lease_until, claimed_at, leg, number, attempt_no)
SELECT $1, $2, $3, $4, $5, 'intent', $6, $7, 1, clock_timestamp() + $8::interval, clock_timestamp(), 'transfer', $9,
       (SELECT count(*) + 1 FROM attempts WHERE call_id = $2 AND leg = 'transfer')
FROM sure`

// A way is a subgroup as a second leg goes through it.
type way struct {
	trunk, prefix string
	allowed       []string
	wait          time.Duration
}

// dayLock has what begins in an organization with caps of a day begin one after
// the other: the next one counts what this one adds. It is taken before the locks
// of laneSQL.
const dayLock = "SELECT FROM organizations WHERE id = $1 AND coalesce(settings -> 'limits', '{}') <> '{}' FOR NO KEY UPDATE"

// laneSQL locks subgroup and trunk, as a claim does.
const laneSQL = `
SELECT s.trunk_id, s.dial_prefix, s.allowed_destinations, coalesce(o.settings -> 'limits', '{}'), o.timezone
FROM subgroups s JOIN trunks t ON t.id = s.trunk_id JOIN organizations o ON o.id = s.org_id
WHERE s.id = $1 AND s.org_id = $2 FOR UPDATE OF s, t`

// lentLock locks the grant of a subgroup whose pace it bounds, before the counts of
// subgroups, as orders do.
const lentLock = "SELECT FROM grants WHERE id = (SELECT grant_id FROM subgroups WHERE id = $1) AND calls_per_minute > 0 FOR NO KEY UPDATE"

// paceSQL takes the next place in the pace of both and of the grant, which counts
// all its subgroups, if there is a line and it comes soon: way is empty where it
// does not.
const paceSQL = `
WITH now AS (SELECT clock_timestamp() AS at), way AS (
	SELECT s.id, s.trunk_id, g.id AS grant_id, greatest(` + store.DueAt + `, now.at) AS due, now.at,
	       s.calls_per_minute AS per_minute, t.calls_per_second AS per_second, g.calls_per_minute AS lent_per_minute
	` + store.Ways + `, now
	WHERE s.id = $1 AND ` + store.DueAt + ` <= now.at + $2::interval
	  AND ` + store.HasLine + `
), token AS (
	UPDATE subgroups s SET next_dial_at = way.due + ` + store.Apart + ` * interval '1 minute' / way.per_minute FROM way WHERE s.id = way.id
), trunk_token AS (
	UPDATE trunks t SET next_dial_at = way.due + ` + store.Apart + ` * interval '1 second' / way.per_second FROM way WHERE t.id = way.trunk_id AND way.per_second > 0
), grant_token AS (
	UPDATE grants g SET next_dial_at = way.due + ` + store.Apart + ` * interval '1 minute' / way.lent_per_minute FROM way WHERE g.id = way.grant_id AND way.lent_per_minute > 0
)`

// takeWay takes a line for a leg, if there is one soon. A leg is part of a call
// that counts already.
func takeWay(ctx context.Context, tx pgx.Tx, c calling) (w way, err error) {
	var caps Caps
	var zone string
	if _, err = tx.Exec(ctx, dayLock, c.org); err != nil {
		return way{}, err
	}
	err = orGone(tx.QueryRow(ctx, laneSQL, c.route, c.org).Scan(&w.trunk, &w.prefix, &w.allowed, &caps, &zone))
	if err != nil {
		return way{}, err
	}
	caps.Calls = 0
	if err = caps.left(ctx, tx, c.org, zone); err != nil {
		return way{}, err
	}
	err = tx.QueryRow(ctx, paceSQL+" SELECT due - at FROM way", c.route, longestWait).Scan(&w.wait)
	if errors.Is(err, pgx.ErrNoRows) {
		return way{}, noLine()
	}
	return w, err
}

func noLine() error {
	return control.Refuse(control.CodeSubgroupConcurrency, "the subgroup or its trunk has no line, or none soon")
}

// orGone is what it means that a call's subgroup has no row.
func orGone(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return control.Refuse(control.CodeSubgroupNotFound, "the call's subgroup is gone")
	}
	return err
}

// MoveLeg implements control.Legs.
func (d *Desk) MoveLeg(ctx context.Context, l control.Lease, to control.AttemptState) error {
	_, err := d.Pool.Exec(ctx, `
		UPDATE attempts SET state = $4, lease_until = CASE WHEN $4 = 'ended' THEN NULL ELSE lease_until END
		WHERE id = $1 AND owner = $2 AND epoch = $3 AND leg = 'transfer' AND state = ANY ($5)`,
		l.AttemptID, l.Owner, l.Epoch, to, control.Before(to))
	if err != nil {
		return fmt.Errorf("second leg: %w", err)
	}
	return nil
}
