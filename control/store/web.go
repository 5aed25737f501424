package store

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/tools"
)

// finishTimeout bounds the write that ends a call that could not start. If the write fails, the call ends when its
// lease expires.
const finishTimeout = 5 * time.Second

// Join uses up the ticket of a web call and claims the call for a node. hash is the hash of the token's id. If Join
// refuses, the error is a *control.Error.
func (s *Store) Join(ctx context.Context, callID string, hash []byte, p control.NodeID, lease time.Duration) (*control.Claim, error) {
	// Read the clock before the database starts the lease: the local end of the lease is then never later than the
	// stored one.
	until := time.Now().Add(lease)
	var l control.Lease
	err := s.tx(ctx, "join", func(tx pgx.Tx) error {
		orgID, err := useTicket(ctx, tx, callID, hash)
		if err != nil {
			return err
		}
		a := NewAttempt(callID, p, lease)
		a.OrgID, l = orgID, a.Lease
		_, err = tx.Exec(ctx, insertAttemptSQL, AttemptColumns.Args(&a)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := s.webClaim(ctx, l, until)
	if err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
		defer cancel()
		err = errors.Join(err, s.Finish(end, l, control.CallResult{
			Status: control.Ended, Reason: control.ReasonInternalError, HangupBy: control.SideSystem,
			EndedAt: time.Now(), Recording: control.RecordingNone,
		}))
	}
	return c, err
}

// useTicket locks a ticket, marks it as used, and returns the call's organization.
func useTicket(ctx context.Context, tx pgx.Tx, callID string, hash []byte) (orgID string, err error) {
	var want []byte
	var used, late bool
	var status control.Status
	err = tx.QueryRow(ctx, `
		SELECT t.hash, t.used_at IS NOT NULL, t.expires_at <= clock_timestamp(), c.status, c.org_id
		FROM web_tickets t JOIN calls c ON c.id = t.call_id WHERE t.call_id = $1 AND c.erased_at IS NULL FOR UPDATE OF t, c`, callID).
		Scan(&want, &used, &late, &status, &orgID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", control.Refuse(control.CodeCallNotFound, "no such call")
	case err != nil:
		return "", err
	case subtle.ConstantTimeCompare(want, hash) != 1:
		return "", control.Refuse(control.CodeTicketInvalid, "the token belongs to another call")
	case status.Over():
		return "", control.Refuse(control.CodeCallOver, "the call has ended")
	case used:
		return "", control.Refuse(control.CodeTicketUsed, "the token was already used")
	case late:
		return "", control.Refuse(control.CodeTicketExpired, "the token has expired")
	}
	_, err = tx.Exec(ctx, "UPDATE web_tickets SET used_at = clock_timestamp() WHERE call_id = $1", callID)
	return orgID, err
}

// webClaim loads a claimed web call.
func (s *Store) webClaim(ctx context.Context, l control.Lease, until time.Time) (*control.Claim, error) {
	var definition []byte
	var secrets media.Secret
	c := &control.Claim{Lease: l, Until: until}
	var err error
	c.Call, err = scanCall(s.Pool.QueryRow(ctx, "SELECT "+selectCall+", v.definition, v.secrets"+fromCalls+`
		JOIN agent_versions v ON v.agent_id = c.agent_id AND v.version = c.agent_version WHERE c.id = $1`, l.CallID), &definition, &secrets)
	if err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	d, err := agents.Decode(definition, secrets)
	if err != nil {
		return nil, fmt.Errorf("join: agent: %w", err)
	}
	c.Target.ID = l.AttemptID
	c.Session, c.Record = sessionOf(c.Call, d)
	if len(d.Tools) > 0 {
		if c.Session.Tools, err = tools.Build(d.ToolDefinitions(), s.Egress, s.HTTPClient); err != nil {
			return nil, fmt.Errorf("join: agent: %w", err)
		}
	}
	return c, nil
}

// settleUnjoined ends web calls that nobody joined in time, at most settleBatch of them.
func settleUnjoined(ctx context.Context, pool *pgxpool.Pool, prices *pricing.List) (n int, err error) {
	err = db.Tx(ctx, pool, func(tx pgx.Tx) error {
		ids, fault := db.Collect(ctx, tx, "", pgx.RowTo[string], `
			UPDATE web_tickets SET used_at = clock_timestamp() WHERE call_id IN (
				SELECT call_id FROM web_tickets WHERE used_at IS NULL AND expires_at <= clock_timestamp()
				ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
			RETURNING call_id`, settleBatch)
		n = len(ids)
		for _, id := range ids {
			fault = errors.Join(fault, endUnjoinedCall(ctx, tx, prices, id, control.ReasonNeverJoined, control.SideSystem))
		}
		return fault
	})
	if err != nil {
		return 0, fmt.Errorf("settle web calls: %w", err)
	}
	return n, nil
}

// endUnjoinedCall ends a web call that nobody joined. An ended call stays unchanged.
func endUnjoinedCall(ctx context.Context, tx pgx.Tx, prices *pricing.List, callID string, why control.Reason, by control.Side) error {
	err := endCall(ctx, tx, prices, callID, control.CallResult{
		Status: control.Ended, Reason: why, HangupBy: by, EndedAt: time.Now(), Recording: control.RecordingNone,
	})
	if errors.Is(err, control.ErrFenced) {
		return nil
	}
	return err
}

// cancelUnjoined cancels a web call that nobody has joined yet, and reports whether it did.
func cancelUnjoined(ctx context.Context, tx pgx.Tx, prices *pricing.List, callID string) (bool, error) {
	tag, err := tx.Exec(ctx, "UPDATE web_tickets SET used_at = clock_timestamp() WHERE call_id = $1 AND used_at IS NULL", callID)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	return true, endUnjoinedCall(ctx, tx, prices, callID, control.ReasonCanceled, control.SideAPI)
}
