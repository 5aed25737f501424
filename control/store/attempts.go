package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
	"github.com/parley-voice/parley/control/pricing"
)

// lockSQL locks an attempt if the node with this owner and epoch still leases it.
const lockSQL = `SELECT state FROM attempts WHERE id = $1 AND owner = $2 AND epoch = $3 FOR UPDATE`

// attemptTx runs do in a transaction that holds a lock on the attempt. It returns ErrFenced if the lease is lost, or
// if the attempt cannot move to the wanted state.
func attemptTx(ctx context.Context, s *Store, doing string, l control.Lease, to control.AttemptState, do func(pgx.Tx) error) error {
	return s.tx(ctx, doing, func(tx pgx.Tx) error {
		var state control.AttemptState
		err := tx.QueryRow(ctx, lockSQL, l.AttemptID, l.Owner, l.Epoch).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !control.CanMove(state, to) {
			return control.ErrFenced
		}
		if err != nil {
			return err
		}
		return do(tx)
	})
}

// Intent implements control.AttemptStore. When it returns nil, the intent is on disk, even if synchronous_commit is
// off.
func (s *Store) Intent(ctx context.Context, l control.Lease) error {
	return db.Wrap(s.writers().intent.Do(ctx, l), "intent")
}

// Release implements control.AttemptStore.
func (s *Store) Release(ctx context.Context, l control.Lease) error {
	return attemptTx(ctx, s, "release", l, control.Scheduled, func(tx pgx.Tx) error {
		if undone, err := s.undo(ctx, tx, l.CallID); undone || err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE attempts SET state = 'scheduled', owner = '', lease_until = NULL WHERE id = $1", l.AttemptID)
		return err
	})
}

// Mark implements control.AttemptStore.
func (s *Store) Mark(ctx context.Context, l control.Lease, to control.AttemptState, at time.Time) error {
	return db.Wrap(s.writers().mark.Do(ctx, mark{l, to, at}), "mark")
}

// Finish implements control.AttemptStore.
func (s *Store) Finish(ctx context.Context, l control.Lease, f control.CallResult) error {
	if isUnanswered(f) {
		return db.Wrap(s.writers().finish.Do(ctx, finish{l, f}), "finish")
	}
	return attemptTx(ctx, s, "finish", l, control.Closed, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE attempts SET state = $2 WHERE id = $1", l.AttemptID, control.Closed); err != nil {
			return err
		}
		if err := replaceTranscript(ctx, tx, l.CallID, f.Lines, f.Turns, s.Pack != nil && s.Pack()); err != nil {
			return err
		}
		return endCall(ctx, tx, s.Prices, l.CallID, f)
	})
}

// isUnanswered reports whether nobody answered the attempt. Such a result has no transcript, quality, usage or
// transfer.
func isUnanswered(f control.CallResult) bool {
	return f.Status == control.Failed && f.AnsweredAt.IsZero() && f.AnsweredBy == "" &&
		len(f.Lines)+len(f.Turns)+len(f.Quality)+len(f.Usage)+len(f.Transfer)+len(f.TransferLegs)+len(f.AMD) == 0
}

//nolint:gochecknoglobals // made once
var endCallSQL = "UPDATE calls c SET " + endColumns.Set(1) +
	fmt.Sprintf(" WHERE id = $%d AND status NOT IN ('ended', 'failed')", endColumns.ArgCount()+1)

// endCall ends a call and its transfer legs, stores its cost, and writes the end event.
func endCall(ctx context.Context, tx pgx.Tx, prices *pricing.List, callID string, f control.CallResult) error {
	cost, err := endCost(ctx, tx, prices, callID, &f)
	if err != nil {
		return err
	}
	row := resultRow(&f)
	if err = row.setCost(cost); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, endCallSQL, append(endColumns.Args(&row), callID)...)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return control.ErrFenced
	}
	_, err = tx.Exec(
		ctx,
		"UPDATE attempts SET state = 'ended', lease_until = NULL WHERE call_id = $1 AND leg = 'transfer' AND state IN "+ActiveStates,
		callID,
	)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO events (call_id, org_id, kind, home)
		SELECT c.id, c.org_id, $2, CASE WHEN $3 THEN '' ELSE coalesce((SELECT home FROM attempts a WHERE a.call_id = c.id AND a.leg = 'callee' ORDER BY attempt_no DESC LIMIT 1), '') END
		FROM calls c WHERE c.id = $1
		ON CONFLICT (call_id, kind) DO NOTHING`, callID, control.CallEnded, f.Reason == control.ReasonUnknown) // the node was lost and there is no recording, so any node may take the event
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_notify($1, ''), pg_notify($2, '')", ChannelEvents, ChannelQueue)
	return err
}

// tx runs do in a transaction. doing describes the work in errors.
func (s *Store) tx(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	return db.Wrap(db.Tx(ctx, s.dialPool(), do), doing)
}

// suppressedSQL reports whether any form of a number ($2) is on the organization's suppression list.
const suppressedSQL = "SELECT EXISTS (SELECT FROM suppressions WHERE org_id = $1 AND number = ANY ($2))"

// Screen implements control.Screener with the organization's suppression list.
func (s *Store) Screen(ctx context.Context, n control.Number, _ control.Purpose) (control.ScreenResult, error) {
	var is bool
	if err := s.Pool.QueryRow(ctx, suppressedSQL, n.OrgID, phonenumber.ListedForms(n.Digits)).Scan(&is); err != nil {
		return control.ScreenResult{}, fmt.Errorf("suppression list: %w", err)
	}
	return ScreenResultOf(is), nil
}

// QueueSuppressed adds a query to a batch. When the batch runs, it calls the callback with the index of each
// suppressed number.
func QueueSuppressed(b *pgx.Batch, numbers []control.Number, is func(n int)) {
	var places []int
	var orgs, digits []string
	for n, number := range numbers {
		for _, same := range phonenumber.ListedForms(number.Digits) {
			places, orgs, digits = append(places, n), append(orgs, number.OrgID), append(digits, same)
		}
	}
	const query = "SELECT x.n FROM unnest($1::int[], $2::text[], $3::text[]) AS x (n, org_id, number) " +
		"JOIN suppressions USING (org_id, number)"
	b.Queue(query, places, orgs, digits).
		Query(func(rows pgx.Rows) error {
			var n int
			_, err := pgx.ForEachRow(rows, []any{&n}, func() error { is(n); return nil })
			return err
		})
}

// ScreenResultOf converts a hit on the organization's suppression list.
func ScreenResultOf(suppressed bool) control.ScreenResult {
	if suppressed {
		return control.ScreenResult{List: "org_suppression"}
	}
	return control.ScreenResult{}
}

// SetRecording stores the status and the storage key of a call's recording. It ignores RecordingFailed unless the
// recording's status is "finalizing".
func (s *Store) SetRecording(ctx context.Context, callID string, status control.RecordingStatus, key string) error {
	_, err := db.Exec(ctx, s.dialPool(), "failed to store the recording status", `
		UPDATE calls SET recording_status = $2, recording_key = $3,
			recording_truncated = recording_truncated AND coalesce(recording_key, '') NOT LIKE 'segments/%'
		WHERE id = $1 AND ($2 <> 'failed' OR recording_status = 'finalizing')`, callID, status, orNull(key))
	return err
}
