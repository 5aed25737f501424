package outcome

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/store"
)

// A LateRecorder also records conversations that a node reports after other nodes declared it lost. The stored end of
// the call stays, but the contact counts as reached and is not called again for that call.
type LateRecorder struct {
	control.AttemptStore

	Outcomes *Recorder
	// Costs stores the cost of such a conversation; nil stores none.
	Costs *store.Costs
}

// Finish implements control.AttemptStore.
func (l *LateRecorder) Finish(ctx context.Context, lease control.Lease, f control.CallResult) error {
	err := l.AttemptStore.Finish(ctx, lease, f)
	if !errors.Is(err, control.ErrFenced) || f.AnsweredAt.IsZero() {
		return err
	}
	if fault := db.Tx(ctx, l.Outcomes.Pool, func(tx pgx.Tx) error { return l.recordAnswer(ctx, tx, lease, f) }); fault != nil {
		return fmt.Errorf("late end of call %s: %w", lease.CallID, fault)
	}
	return err
}

// recordAnswer stores the answer of the call unless one is stored.
func (l *LateRecorder) recordAnswer(ctx context.Context, tx pgx.Tx, lease control.Lease, f control.CallResult) error {
	var dialed *time.Time
	if !f.DialedAt.IsZero() {
		dialed = &f.DialedAt
	}
	tag, err := tx.Exec(ctx, `
		UPDATE calls c SET dialed_at = coalesce(c.dialed_at, $3), answered_at = $4, ended_at = greatest($5::timestamptz, $4::timestamptz), answered_by = nullif($6, '')
		FROM attempts a WHERE a.id = $2 AND a.call_id = c.id AND a.state = 'unknown' AND a.owner = $7
			AND c.id = $1 AND c.disconnection_reason = $8 AND c.answered_at IS NULL`,
		lease.CallID, lease.AttemptID, dialed, f.AnsweredAt, f.EndedAt, f.AnsweredBy, lease.Owner, control.ReasonUnknown)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if l.Costs != nil {
		if err = l.Costs.SetLate(ctx, tx, lease.CallID, f); err != nil {
			return err
		}
	}
	switch f.AnsweredBy {
	case "voicemail", "ivr", "fax":
		return nil // no person answered
	}
	return l.Outcomes.markReached(ctx, tx, lease.CallID)
}

// markReached marks a contact as reached if it waits for its next call or has no attempt left.
func (r *Recorder) markReached(ctx context.Context, tx pgx.Tx, callID string) error {
	t, err := r.attemptOf(ctx, tx, callID)
	if errors.Is(err, ErrNoContact) {
		return nil
	}
	if err != nil || t.Ended.IsZero() || t.State != campaigns.Pending && t.State != campaigns.Exhausted {
		return err
	}
	now, err := r.clock(ctx, tx)
	if err != nil {
		return err
	}
	t.Tried.Outcome = retry.Answered
	return r.Store.Attempts.SaveOutcome(ctx, tx, callID, retry.Answered, t.Ended,
		t.Campaign.NextAfter(t.Tried, now).UnlessOptedOut(t.OptedOut), now)
}
