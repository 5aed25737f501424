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
	"github.com/parley-voice/parley/control/trunks"
)

// maxPaceWait is the maximum time that a transfer waits for the pacing of its route.
const maxPaceWait = 5 * time.Second

type heldCall struct{ org, route, home string }

const heldCallSQL = `
SELECT c.org_id, c.route_id, a.home FROM attempts a JOIN calls c ON c.id = a.call_id
WHERE a.id = $1 AND a.owner = $2 AND a.epoch = $3 AND a.state IN ` + store.ActiveStates

func (d *Controller) heldCall(ctx context.Context, q db.Querier, l control.Lease, lock string) (c heldCall, err error) {
	err = q.QueryRow(ctx, heldCallSQL+lock, l.AttemptID, l.Owner, l.Epoch).Scan(&c.org, &c.route, &c.home)
	if errors.Is(err, pgx.ErrNoRows) {
		return heldCall{}, control.ErrFenced
	}
	return c, err
}

// OpenLeg implements control.LegStore. A transfer leg is subject to the allowed destinations of the call's subgroup,
// the do-not-call lists, the channels and pacing of subgroup and trunk, and the organization's daily minutes and cost.
func (d *Controller) OpenLeg(ctx context.Context, l control.Lease, number string, lease time.Duration) (control.TransferLeg, error) {
	c, err := d.heldCall(ctx, d.Pool, l, "")
	if err != nil {
		return control.TransferLeg{}, fmt.Errorf("transfer leg: %w", err)
	}
	to := control.Digits(number)
	v, err := d.screen(ctx, control.Number{OrgID: c.org, Digits: to}, control.ForTransfer)
	if err != nil {
		return control.TransferLeg{}, fmt.Errorf("transfer leg: do-not-call lists: %w", err)
	}
	if v.List != "" {
		return control.TransferLeg{}, control.Refuse(control.CodeDestinationNotAllowed, "the number is on a do-not-call list: "+v.List)
	}
	a := store.NewAttempt(l.CallID, control.NodeID{Owner: l.Owner, Home: c.home}, lease)
	a.OrgID, a.RouteID, a.State, a.Leg, a.Number = c.org, c.route, control.Intent, "transfer", to
	s := control.TransferLeg{Number: to, Lease: a.Lease}
	err = db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		lane, fault := reserveChannel(ctx, tx, c)
		if fault != nil {
			return fault
		}
		if fault = CheckDestination(number, lane.allowed); fault != nil {
			return fault
		}
		if _, fault = d.heldCall(ctx, tx, l, " FOR UPDATE OF a"); fault != nil {
			return fault
		}
		s.Dial, s.Wait, s.CostPerMinute = lane.prefix+to, lane.wait, lane.settings.Rate(to)
		a.TrunkID, a.LeaseFor = lane.trunk, lease+lane.wait
		_, fault = tx.Exec(ctx, openLegSQL, legColumns.Args(&a)...)
		return fault
	})
	if err != nil {
		return control.TransferLeg{}, fmt.Errorf("transfer leg: %w", err)
	}
	return s, nil
}

// openLegSQL inserts a transfer leg with its intent. It turns synchronous_commit on, so that the commit waits for the
// disk.
//
//nolint:gochecknoglobals // made once
var openLegSQL = "WITH sure AS (SELECT set_config('synchronous_commit', 'on', true)) " + legColumns.Insert("attempts", 1) + " FROM sure"

// legColumns are the columns of a transfer leg. $2 is the id of its call.
//
//nolint:gochecknoglobals // read-only table
var legColumns = store.AttemptColumns.WriteAs("attempt_no", "(SELECT count(*) + 1 FROM attempts WHERE call_id = $2 AND leg = 'transfer')")

// routeSlot describes the reserved channel of a transfer leg or a campaign call.
type routeSlot struct {
	trunk, prefix string
	allowed       []string
	settings      trunks.Settings // settings of the trunk
	wait          time.Duration
}

// lockOrganizationSQL locks an organization that has limits. The organization then registers one call at a time, and
// each call counts all earlier ones. Run it before lockRouteSQL.
const lockOrganizationSQL = "SELECT FROM organizations WHERE id = $1 AND coalesce(settings -> 'limits', '{}') <> '{}' FOR NO KEY UPDATE"

// lockRouteSQL locks a subgroup and its trunk. A claim takes the same locks.
const lockRouteSQL = `
SELECT s.trunk_id, s.dial_prefix, s.allowed_destinations, t.settings, coalesce(o.settings -> 'limits', '{}'), o.timezone
FROM subgroups s JOIN trunks t ON t.id = s.trunk_id JOIN organizations o ON o.id = s.org_id
WHERE s.id = $1 AND s.org_id = $2 FOR UPDATE OF s, t`

// lockGrantSQL locks the grant of a subgroup if the grant limits the pace. Run it before the counters of subgroups are
// locked, because orders lock in the same sequence.
const lockGrantSQL = `
SELECT FROM grants WHERE id = (SELECT grant_id FROM subgroups WHERE id = $1) AND calls_per_minute > 0 FOR NO KEY UPDATE`

// paceSQL returns CTEs that reserve a channel of subgroup $1 and the next start of subgroup, trunk and grant. If no
// channel is free, or the start is not due within $2, they reserve nothing and the CTE "start" is empty. due is
// store.DueAt or store.EvenlyDueAt.
func paceSQL(due string) string {
	return `
WITH now AS (SELECT clock_timestamp() AS at), start AS (
	SELECT s.id, s.trunk_id, g.id AS grant_id, greatest(` + due + `, now.at) AS at, now.at AS asked, 1 AS calls,
	       s.calls_per_minute AS per_minute, t.calls_per_second AS per_second, g.calls_per_minute AS lent_per_minute
	` + store.FromRoutes + `, now
	WHERE s.id = $1 AND ` + due + ` <= now.at + $2::interval
	  AND ` + store.HasFreeChannel + `
), ` + store.RecordStart
}

// reserveChannel reserves a channel for a transfer leg. The leg does not count toward the organization's daily calls.
func reserveChannel(ctx context.Context, tx pgx.Tx, c heldCall) (w routeSlot, err error) {
	var caps Caps
	var zone string
	if _, err = tx.Exec(ctx, lockOrganizationSQL, c.org); err != nil {
		return routeSlot{}, err
	}
	err = orNotFound(tx.QueryRow(ctx, lockRouteSQL, c.route, c.org).Scan(&w.trunk, &w.prefix, &w.allowed, &w.settings, &caps, &zone))
	if err != nil {
		return routeSlot{}, err
	}
	if err = caps.checkNow(ctx, tx, c.org, zone, true); err != nil {
		return routeSlot{}, err
	}
	err = tx.QueryRow(ctx, paceSQL(store.DueAt)+" SELECT at - asked FROM start", c.route, maxPaceWait).Scan(&w.wait)
	if errors.Is(err, pgx.ErrNoRows) {
		return routeSlot{}, errNoChannel()
	}
	return w, err
}

func errNoChannel() error {
	return control.Refuse(control.CodeSubgroupConcurrency, "the subgroup or its trunk has no free channel")
}

// orNotFound turns pgx.ErrNoRows into a refusal.
func orNotFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return control.Refuse(control.CodeSubgroupNotFound, "the call's subgroup was deleted")
	}
	return err
}

// MoveLeg implements control.LegStore.
func (d *Controller) MoveLeg(ctx context.Context, l control.Lease, to control.AttemptState) error {
	_, err := db.Exec(ctx, d.Pool, "transfer leg", `
		UPDATE attempts SET state = $4, lease_until = CASE WHEN $4 = 'ended' THEN NULL ELSE lease_until END
		WHERE id = $1 AND owner = $2 AND epoch = $3 AND leg = 'transfer' AND state = ANY ($5)`,
		l.AttemptID, l.Owner, l.Epoch, to, control.StatesBefore(to))
	return err
}
