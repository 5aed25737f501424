package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
)

// End asks a call of an organization to end. A call that is not on its way to
// the carrier yet is cancelled here and now; for the others the request is
// noted and their node woken. It returns the call as it is then; a call that
// was over is left alone.
func (s *Store) End(ctx context.Context, orgID, id string) (control.Call, error) {
	var c control.Call
	err := s.tx(ctx, "end call", func(tx pgx.Tx) error {
		if _, err := callIn(ctx, tx, orgID, id); err != nil {
			return err
		}
		var attempt string
		var state control.AttemptState
		err := tx.QueryRow(ctx, "SELECT id, state FROM attempts WHERE call_id = $1 AND leg = 'callee' ORDER BY attempt_no DESC LIMIT 1 FOR UPDATE", id).Scan(&attempt, &state)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		// Under the attempt's lock nobody else ends the call.
		if c, err = callIn(ctx, tx, orgID, id); err != nil || c.Status.Over() {
			return err
		}
		if c.Type == control.Web {
			if ended, fault := endUnjoined(ctx, tx, id); ended || fault != nil {
				c, err = callIn(ctx, tx, orgID, id)
				return errors.Join(fault, err)
			}
		}
		if c.Type == control.Web || state != control.Scheduled && state != control.Claimed {
			return requestEnd(ctx, tx, id)
		}
		if err = cancel(ctx, tx, id, attempt); err != nil {
			return err
		}
		c, err = callIn(ctx, tx, orgID, id)
		return err
	})
	return c, err
}

// cancel ends a call of which nothing has left.
func cancel(ctx context.Context, tx pgx.Tx, id, attempt string) error {
	// The new epoch stops a node that was about to dial.
	_, err := tx.Exec(ctx, "UPDATE attempts SET state = 'ended', epoch = epoch + 1, lease_until = NULL WHERE id = $1", attempt)
	if err != nil {
		return err
	}
	return conclude(ctx, tx, id, control.Final{
		Status: control.Failed, Reason: control.ReasonCancelled, HangupBy: control.SideAPI,
		EndedAt: time.Now(), Recording: control.RecordingNone,
	})
}

// requestEnd tells the node that has the call.
func requestEnd(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, "UPDATE calls SET end_requested_at = coalesce(end_requested_at, now()) WHERE id = $1", id)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", BellEnds)
	return err
}
