package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
)

// End ends a call on request. If no INVITE was sent yet, it cancels the call at once. Otherwise it stores the request
// and wakes the call's node. It returns the resulting call. An ended call stays unchanged.
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
		// Read the call again: nobody else can end the call while the attempt is locked.
		if c, err = callIn(ctx, tx, orgID, id); err != nil || c.Status.Over() {
			return err
		}
		if c.Type == control.Web {
			if ended, fault := cancelUnjoined(ctx, tx, s.Prices, id); ended || fault != nil {
				c, err = callIn(ctx, tx, orgID, id)
				return errors.Join(fault, err)
			}
		}
		if c.Type == control.Web || state != control.Scheduled && state != control.Claimed {
			return requestEnd(ctx, tx, id)
		}
		if err = cancel(ctx, tx, s.Prices, id, attempt); err != nil {
			return err
		}
		c, err = callIn(ctx, tx, orgID, id)
		return err
	})
	return c, err
}

// endRounds limits how often EndAll looks for further calls, endBatch how many it reads each time.
const (
	endRounds = 20
	endBatch  = 500
)

// EndAll ends the active calls of an organization as End does: first those in conversation, all at once, then the others.
// It also ends calls that are placed meanwhile. If the end of a call fails, it ends the others. It returns the number of
// ended calls, and an error if active calls may be left.
func EndAll(ctx context.Context, s *Store, orgID string) (n int, err error) {
	err = s.tx(ctx, "end calls", func(tx pgx.Tx) error {
		done, fault := tx.Exec(ctx, `
			UPDATE calls SET end_requested_at = now() WHERE org_id = $1 AND status = 'ongoing' AND end_requested_at IS NULL AND erased_at IS NULL`, orgID)
		if fault != nil {
			return fault
		}
		n = int(done.RowsAffected())
		return notifyEnds(ctx, tx)
	})
	failed := []string{}
	for range endRounds {
		ids, fault := db.Collect(ctx, s.Pool, "active calls", pgx.RowTo[string], `
			SELECT id FROM calls WHERE org_id = $1 AND status IN ('queued', 'ringing', 'ongoing') AND end_requested_at IS NULL AND erased_at IS NULL
				AND id <> ALL($3) ORDER BY status DESC, created_at LIMIT $2`, orgID, endBatch, failed)
		if fault != nil || len(ids) == 0 {
			return n, cmp.Or(err, fault)
		}
		for _, id := range ids {
			_, fault = s.End(ctx, orgID, id)
			switch {
			case fault == nil:
				n++
			case control.CodeOf(fault) != control.CodeCallNotFound: // an erased call has ended
				failed, err = append(failed, id), cmp.Or(err, fault)
			}
		}
	}
	return n, cmp.Or(err, errors.New("end calls: new calls are placed all the time"))
}

// cancel ends a call whose INVITE was not sent.
func cancel(ctx context.Context, tx pgx.Tx, prices *pricing.List, id, attempt string) error {
	// The new epoch fences a node that is about to dial.
	_, err := tx.Exec(ctx, "UPDATE attempts SET state = 'ended', epoch = epoch + 1, lease_until = NULL WHERE id = $1", attempt)
	if err != nil {
		return err
	}
	return endCall(ctx, tx, prices, id, control.CallResult{
		Status: control.Failed, Reason: control.ReasonCanceled, HangupBy: control.SideAPI,
		EndedAt: time.Now(), Recording: control.RecordingNone,
	})
}

// requestEnd stores the request to end a call, and wakes the call's node.
func requestEnd(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, "UPDATE calls SET end_requested_at = coalesce(end_requested_at, now()) WHERE id = $1", id)
	if err != nil {
		return err
	}
	return notifyEnds(ctx, tx)
}

// notifyEnds wakes the nodes whose calls were asked to end.
func notifyEnds(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT pg_notify($1, '')", ChannelEnds)
	return err
}
