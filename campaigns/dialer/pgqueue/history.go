package pgqueue

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
)

// historySQL returns the calls of an organization to a number since an instant: whether each call is active, when its
// INVITE left, and when its conversation ended. A call without a recorded INVITE counts if it rang or was answered, or
// if its node was lost, because it may have rung. The clocks of nodes may be wrong. The query therefore moves times
// that are before the registration of the call in the database to the registration. It places the end at least as long
// after the registration as the node's clock measured. A call that rang or talked when its node was lost counts as active
// for the longest possible conversation (the limit of its agent, or $4), because a node that only lost the database
// continues its calls. If the phone rang, it counts until the node returns and reports the end.
const historySQL = `
SELECT status IN ('queued', 'ringing', 'ongoing') OR (CASE disconnection_reason
		WHEN 'unknown_after_restart' THEN CASE WHEN answered_at IS NULL THEN ended_at END
		WHEN 'node_lost' THEN greatest(answered_at, created_at) END + ring_seconds * interval '1 second' +
		coalesce(nullif(max_duration_seconds, 0) * interval '1 second', (SELECT nullif(v.definition ->> 'max_duration_s', '0')::integer * interval '1 second'
			FROM agent_versions v WHERE v.agent_id = calls.agent_id AND v.version = calls.agent_version), $4) > clock_timestamp()) IS TRUE,
	CASE WHEN coalesce(dialed_at, ringing_at, answered_at) IS NOT NULL OR disconnection_reason IN ('unknown_after_restart', 'node_lost')
		THEN greatest(dialed_at, created_at) ELSE '-infinity' END,
	CASE WHEN answered_at IS NOT NULL AND answered_by IS DISTINCT FROM 'voicemail' AND answered_by IS DISTINCT FROM 'ivr' AND answered_by IS DISTINCT FROM 'fax'
		AND ended_at IS NOT NULL THEN greatest(ended_at, created_at, created_at + (ended_at - dialed_at)) ELSE '-infinity' END
FROM calls WHERE org_id = $1 AND to_number = ANY ($2) AND created_at > $3
ORDER BY 2`

// maxLostConversation bounds a conversation on a lost node whose agent sets no limit.
const maxLostConversation = 30 * time.Minute

// maxCallDuration bounds the time from the registration of a call to its end.
const maxCallDuration = 24 * time.Hour

// queueHistory reads the organization's calls to a number, both campaign and single calls, and whether one of them is
// active. It locks the number until the transaction ends. Without the lock, two calls at the same time could both
// pass a cap.
func queueHistory(batch *pgx.Batch, orgID, number string, since time.Time, k *contact) {
	batch.Queue(`
		SELECT NOT pg_try_advisory_xact_lock(hashtextextended($1 || $2, 0))
			OR EXISTS (SELECT FROM contact_attempts WHERE org_id = $1 AND number = $2 AND ended_at IS NULL)`, orgID, number).
		QueryRow(func(row pgx.Row) error {
			var engaged bool
			err := row.Scan(&engaged)
			k.Engaged = k.Engaged || engaged
			return err
		})
	batch.Queue(historySQL, orgID, phonenumber.Forms(control.Digits(number)), since, maxLostConversation).Query(func(rows pgx.Rows) error {
		var active bool
		var dialed, talked time.Time
		_, err := pgx.ForEachRow(rows, []any{&active, (*instant)(&dialed), (*instant)(&talked)}, func() error {
			k.Engaged = k.Engaged || active
			if !dialed.IsZero() {
				k.History.Dials = append(k.History.Dials, dialed)
			}
			if talked.After(k.History.Talked) {
				k.History.Talked = talked
			}
			return nil
		})
		return err
	})
}

// setState takes a contact out of the queue.
func (q *Queue) setState(ctx context.Context, tx pgx.Tx, id string, s campaigns.State, reason, governing string, now time.Time) error {
	const sql = "UPDATE contacts SET state = $2, reason = $3, governing_cap = $4, updated_at = $5 WHERE id = $1"
	_, err := db.Exec(ctx, tx, "contact "+id, sql, id, s, reason, governing, now)
	return err
}

// recheckAfter is the time until a contact is checked again if the gate returns no time.
const recheckAfter = time.Minute

// postpone sets when a contact is checked again.
func (q *Queue) postpone(ctx context.Context, tx pgx.Tx, id string, v plan.Verdict, now time.Time) error {
	until := v.Until
	if until.IsZero() {
		until = now.Add(recheckAfter)
	}
	sql := "UPDATE contacts SET due_at = $2, governing_cap = $3 WHERE id = $1"
	if v.Reason == plan.FrequencyCap {
		sql = "UPDATE contacts SET due_at = $2, next_attempt_at = $2, governing_cap = $3 WHERE id = $1"
	} else {
		v.Cap = ""
	}
	_, err := db.Exec(ctx, tx, "contact "+id, sql, id, until, v.Cap)
	return err
}
