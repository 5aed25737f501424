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
		var err error
		if c, err = callIn(ctx, tx, orgID, id); err != nil || c.Status.Over() {
			return err
		}
		var attempt string
		var state control.AttemptState
		err = tx.QueryRow(ctx, "SELECT id, state FROM attempts WHERE call_id = $1 ORDER BY attempt_no DESC LIMIT 1 FOR UPDATE", id).Scan(&attempt, &state)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		// Under the attempt's lock nobody else ends the call.
		if again, err := callIn(ctx, tx, orgID, id); err != nil || again.Status.Over() {
			c = again
			return err
		}
		if err == nil && (state == control.Scheduled || state == control.Claimed) {
			// The new epoch stops a node that was about to dial.
			_, err := tx.Exec(ctx, "UPDATE attempts SET state = 'ended', epoch = epoch + 1, lease_until = NULL WHERE id = $1", attempt)
			if err != nil {
				return err
			}
			err = conclude(ctx, tx, id, control.Final{
				Status: control.Failed, Reason: control.ReasonCancelled, HangupBy: control.SideAPI,
				EndedAt: time.Now(), Recording: control.RecordingNone,
			})
			if err != nil && !errors.Is(err, control.ErrFenced) {
				return err
			}
			c, err = callIn(ctx, tx, orgID, id)
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE calls SET end_requested_at = coalesce(end_requested_at, now()) WHERE id = $1", id)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", BellEnds)
		return err
	})
	return c, err
}
