package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// settleBatch is the maximum number of attempts or calls that one transaction settles.
const settleBatch = 50

// lapsed is an attempt whose lease has expired or whose time in the queue is over.
type lapsed struct {
	attempt, call string
	leg           string
	web           bool // the call is a web call
	gone          bool // the call's subgroup was deleted
	state         control.AttemptState
	until         *time.Time
	now           time.Time
}

// Settle implements control.Queue. It uses the database's clock.
//
// A claimed attempt whose lease expired returns to the queue, because nothing was sent. From the state "intent" up to
// the answer, the phone may have rung, so the attempt becomes "unknown" and is never dialed again. An answered call
// ends as node_lost. A call that waited too long expires. A call of a deleted subgroup fails.
//
// While dialing is paused because the database reverted to an older state, nothing is settled. Claims from before the
// revert are held until all nodes have reported, because their INVITE may have been sent.
func (s *Store) Settle(ctx context.Context, keep []string) (int, error) {
	total := 0
	for {
		n, err := s.settleSome(ctx, keep)
		total += n
		if err == nil && n < settleBatch {
			n, err = settleUnjoined(ctx, s.Pool, s.Prices)
			total += n
		}
		if err != nil || n < settleBatch {
			return total, err
		}
	}
}

func (s *Store) settleSome(ctx context.Context, keep []string) (int, error) {
	expire := s.ExpireAfter
	if expire == 0 {
		expire = 15 * time.Minute
	}
	n := 0
	err := db.Tx(ctx, s.dialPool(), func(tx pgx.Tx) error {
		left, err := db.Collect(ctx, tx, "", scanLapsed, waitingSQL("NULL")+`, gone AS (
				SELECT id FROM waiting w WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM subgroups s WHERE s.id = w.id))
			SELECT id, call_id, leg, (SELECT call_type = 'web' FROM calls c WHERE c.id = call_id), subgroup_id IN (SELECT id FROM gone), state, lease_until, clock_timestamp()
			FROM attempts WHERE (SELECT dialing_since()) IS NOT NULL AND id IN (
				(SELECT id FROM attempts WHERE state IN `+ActiveStates+` AND lease_until < clock_timestamp() AND (state <> 'claimed' OR claimed_at >= (SELECT dialing_since())) AND NOT id = ANY (coalesce($1::text[], '{}')) ORDER BY lease_until LIMIT $3)
				UNION ALL
				(SELECT id FROM attempts WHERE state = 'scheduled' AND created_at < clock_timestamp() - $2::interval ORDER BY created_at LIMIT $3)
				UNION ALL
				(SELECT id FROM attempts WHERE state = 'scheduled' AND subgroup_id IN (SELECT id FROM gone) LIMIT $3))
			  AND (state = 'scheduled' AND (created_at < clock_timestamp() - $2::interval OR subgroup_id IN (SELECT id FROM gone)) OR state IN `+ActiveStates+` AND lease_until < clock_timestamp())
			ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED`, keep, expire, settleBatch)
		if err != nil {
			return err
		}
		for _, l := range left {
			if err = s.settleOne(ctx, tx, l); err != nil {
				return fmt.Errorf("%s: %w", l.attempt, err)
			}
		}
		n = len(left)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("settle: %w", err)
	}
	return n, nil
}

func scanLapsed(row pgx.CollectableRow) (lapsed, error) {
	var l lapsed
	err := row.Scan(&l.attempt, &l.call, &l.leg, &l.web, &l.gone, &l.state, &l.until, &l.now)
	return l, err
}

func (s *Store) settleOne(ctx context.Context, tx pgx.Tx, l lapsed) error {
	to, final := settlement(l)
	if to == control.Scheduled {
		if undone, err := s.undo(ctx, tx, l.call); undone || err != nil {
			return err
		}
	}
	// The new epoch fences the old owner in case that node is still alive.
	_, err := tx.Exec(ctx, `
		UPDATE attempts SET state = $2, epoch = epoch + 1, lease_until = NULL,
			owner = CASE WHEN $2 = 'scheduled' THEN '' ELSE owner END
		WHERE id = $1`, l.attempt, to)
	if err != nil {
		return err
	}
	if to == control.Scheduled {
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", ChannelQueue)
		return err
	}
	if l.leg != "callee" { // a transfer leg was lost; the call continues or ends by itself
		return nil
	}
	// The call may have ended already. In that case its event exists.
	if err := endCall(ctx, tx, s.Prices, l.call, final); err != nil && !errors.Is(err, control.ErrFenced) {
		return err
	}
	return nil
}

// undo deletes a call that was never sent if s.Undo withdraws it. It reports whether the call was deleted.
func (s *Store) undo(ctx context.Context, tx pgx.Tx, callID string) (bool, error) {
	if s.Undo == nil {
		return false, nil
	}
	undone, err := s.Undo(ctx, tx, callID)
	if undone && err == nil {
		_, err = tx.Exec(ctx, "DELETE FROM calls WHERE id = $1", callID)
	}
	return undone, err
}

func settlement(l lapsed) (control.AttemptState, control.CallResult) {
	f := control.CallResult{Status: control.Failed, HangupBy: control.SideSystem, EndedAt: l.now, Recording: control.RecordingNone}
	if l.web && l.state != control.Answered { // the browser lost its node before the conversation
		f.Status, f.Reason = control.Ended, control.ReasonNodeLost
		return control.Closed, f
	}
	switch l.state {
	case control.Scheduled:
		if f.Reason = control.ReasonQueueExpired; l.gone {
			f.Reason = control.Reason(media.RouteError)
		}
		return control.Closed, f
	case control.Claimed:
		return control.Scheduled, f
	case control.Answered:
		f.Status, f.Reason, f.Recording = control.Ended, control.ReasonNodeLost, control.RecordingFinalizing
		if l.until != nil { // the last renewal of the lease is the best estimate of the end
			f.EndedAt = *l.until
		}
		return control.Closed, f
	default:
		f.Reason = control.ReasonUnknown
		return control.Unknown, f
	}
}
