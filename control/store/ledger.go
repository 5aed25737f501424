package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// lockSQL locks an attempt for a node that still holds it.
const lockSQL = `SELECT state FROM attempts WHERE id = $1 AND owner = $2 AND epoch = $3 FOR UPDATE`

// hold locks the attempt and returns its state, or ErrFenced.
func hold(ctx context.Context, tx pgx.Tx, l control.Lease) (control.AttemptState, error) {
	var state control.AttemptState
	err := tx.QueryRow(ctx, lockSQL, l.AttemptID, l.Owner, l.Epoch).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", control.ErrFenced
	}
	return state, err
}

func move(ctx context.Context, tx pgx.Tx, l control.Lease, to control.AttemptState) error {
	_, err := tx.Exec(ctx, "UPDATE attempts SET state = $2 WHERE id = $1", l.AttemptID, to)
	return err
}

// Intent implements control.Ledger. When it returns nil the intent is on disk,
// whatever the database does otherwise.
func (s *Store) Intent(ctx context.Context, l control.Lease) error {
	return s.tx(ctx, "intent", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = on"); err != nil {
			return err
		}
		state, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		if !control.May(state, control.Intent) {
			return control.ErrFenced
		}
		// What was asked, or forbidden, since the call was accepted counts.
		var asked bool
		var org, to string
		err = tx.QueryRow(ctx, "SELECT end_requested_at IS NOT NULL, org_id, to_number FROM calls WHERE id = $1", l.CallID).
			Scan(&asked, &org, &to)
		if err != nil {
			return err
		}
		suppressed, err := Suppressed(ctx, tx, org, to)
		switch {
		case err != nil:
			return err
		case asked:
			return &control.HaltError{Reason: control.ReasonCancelled}
		case suppressed:
			return &control.HaltError{Reason: control.ReasonDNCBlocked}
		}
		return move(ctx, tx, l, control.Intent)
	})
}

// Release implements control.Ledger.
func (s *Store) Release(ctx context.Context, l control.Lease) error {
	return s.tx(ctx, "release", func(tx pgx.Tx) error {
		state, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		if !control.May(state, control.Scheduled) {
			return control.ErrFenced
		}
		_, err = tx.Exec(ctx, "UPDATE attempts SET state = 'scheduled', owner = '', lease_until = NULL WHERE id = $1", l.AttemptID)
		return err
	})
}

// Mark implements control.Ledger.
func (s *Store) Mark(ctx context.Context, l control.Lease, to control.AttemptState, at time.Time) error {
	column, status := "dialed_at", control.Queued
	switch to {
	case control.Rang:
		column, status = "ringing_at", control.Ringing
	case control.Answered:
		column, status = "answered_at", control.Ongoing
	default: // sent: the party's phone is silent still
	}
	return s.tx(ctx, "mark", func(tx pgx.Tx) error {
		state, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		if !control.May(state, to) {
			if control.May(state, control.Closed) {
				return nil // passed already
			}
			return control.ErrFenced
		}
		if err = move(ctx, tx, l, to); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE calls SET status = $2, `+column+` = $3,
			recording_status = CASE WHEN $2 = 'ongoing' AND recording_status = 'none' THEN 'in_progress' ELSE recording_status END
			WHERE id = $1`, l.CallID, status, at)
		return err
	})
}

// Note implements control.Ledger.
func (s *Store) Note(ctx context.Context, l control.Lease, n control.Notes) error {
	return s.tx(ctx, "note", func(tx pgx.Tx) error {
		state, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		if !control.May(state, control.Closed) {
			return control.ErrFenced
		}
		return writeWords(ctx, tx, l.CallID, n.Lines, n.FirstLine, n.Turns, n.FirstTurn)
	})
}

// Finish implements control.Ledger.
func (s *Store) Finish(ctx context.Context, l control.Lease, f control.Final) error {
	return s.tx(ctx, "finish", func(tx pgx.Tx) error {
		state, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		if !control.May(state, control.Closed) {
			return control.ErrFenced
		}
		if err := move(ctx, tx, l, control.Closed); err != nil {
			return err
		}
		for _, table := range []string{"call_lines", "call_turns"} {
			if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE call_id = $1", l.CallID); err != nil {
				return err
			}
		}
		if err := writeWords(ctx, tx, l.CallID, f.Lines, 0, f.Turns, 0); err != nil {
			return err
		}
		return conclude(ctx, tx, l.CallID, f)
	})
}

// conclude ends a call's row and writes the event of it.
func conclude(ctx context.Context, tx pgx.Tx, callID string, f control.Final) error {
	tag, err := tx.Exec(ctx, `
		UPDATE calls SET status = $2, disconnection_reason = $3, hangup_by = $4, sip_status = $5, sip_reason = $6,
			dialed_at = coalesce($7, dialed_at), ringing_at = coalesce($8, ringing_at),
			answered_at = coalesce($9, answered_at), ended_at = $10, quality = $12, transfer = $13,
			answered_by = $14, amd = $15,
			recording_status = CASE WHEN recording_status = 'disabled' THEN 'disabled' ELSE $11 END
		WHERE id = $1 AND status NOT IN ('ended', 'failed')`,
		callID, f.Status, orNull(string(f.Reason)), orNull(string(f.HangupBy)), orNull(f.SIPStatus), orNull(f.SIPReason),
		orNull(f.DialedAt), orNull(f.RingingAt), orNull(f.AnsweredAt), f.EndedAt, f.Recording, f.Quality, f.Transfer,
		orNull(f.AnsweredBy), f.AMD)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return control.ErrFenced
	}
	_, err = tx.Exec(ctx, "UPDATE attempts SET state = 'ended', lease_until = NULL WHERE call_id = $1 AND leg = 'transfer' AND state IN "+alive, callID)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO events (call_id, org_id, kind, home)
		SELECT c.id, c.org_id, $2, coalesce((SELECT home FROM attempts a WHERE a.call_id = c.id AND a.leg = 'callee' ORDER BY attempt_no DESC LIMIT 1), '')
		FROM calls c WHERE c.id = $1
		ON CONFLICT (call_id, kind) DO NOTHING`, callID, control.CallEnded)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_notify($1, ''), pg_notify($2, '')", BellEvents, BellQueue)
	return err
}

// tx runs a transaction and says in its error what it was for. Refusals and
// fences come out as they are.
func (s *Store) tx(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	err := db.Tx(ctx, s.Pool, do)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Suppressed reports whether an organization has forbidden to call a number,
// however it is written.
func Suppressed(ctx context.Context, q db.Querier, orgID, number string) (bool, error) {
	var is bool
	err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM suppressions WHERE org_id = $1 AND number = ANY ($2))",
		orgID, control.SameNumber(number)).Scan(&is)
	return is, err
}

// Allowed implements control.Screen by the organization's suppression list.
func (s *Store) Allowed(ctx context.Context, n control.Number, _ control.Purpose) (control.Verdict, error) {
	is, err := Suppressed(ctx, s.Pool, n.OrgID, n.Digits)
	if err != nil {
		return control.Verdict{}, fmt.Errorf("suppression list: %w", err)
	}
	if is {
		return control.Verdict{List: "org_suppression"}, nil
	}
	return control.Verdict{}, nil
}
