package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
)

// End asks a call to end. A call that was not sent to the carrier yet is canceled at once; otherwise the request is
// stored and the call's node is woken. It returns the call afterwards; an ended call is unchanged.
func (s *Store) End(ctx context.Context, orgID, id string) (control.Call, error) {
	var c control.Call
	err := s.tx(ctx, "end call", func(tx pgx.Tx) error {
		if _, err := callIn(ctx, tx, orgID, id); err != nil {
			return err
		}
		var attempt string
		var state control.AttemptState
		const query = "SELECT id, state FROM attempts WHERE call_id = $1 AND leg = 'callee' ORDER BY attempt_no DESC LIMIT 1 FOR UPDATE"
		err := tx.QueryRow(ctx, query, id).Scan(&attempt, &state)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		// The attempt's lock keeps others from ending the call.
		if c, err = callIn(ctx, tx, orgID, id); err != nil || c.Status.Over() {
			return err
		}
		if c.Type == control.Web {
			if ended, fault := cancelUnjoined(ctx, tx, id); ended || fault != nil {
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

// cancel ends a call that was not sent.
func cancel(ctx context.Context, tx pgx.Tx, id, attempt string) error {
	// The new epoch fences a node that is about to dial.
	_, err := tx.Exec(ctx, "UPDATE attempts SET state = 'ended', epoch = epoch + 1, lease_until = NULL WHERE id = $1", attempt)
	if err != nil {
		return err
	}
	return endCall(ctx, tx, id, control.CallResult{
		Status: control.Failed, Reason: control.ReasonCanceled, HangupBy: control.SideAPI,
		EndedAt: time.Now(), Recording: control.RecordingNone,
	})
}

// requestEnd asks the call's node to end it.
func requestEnd(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, "UPDATE calls SET end_requested_at = coalesce(end_requested_at, now()) WHERE id = $1", id)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", ChannelEnds)
	return err
}
