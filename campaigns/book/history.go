package book

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/spelling"
)

// historySQL has the calls of an organization to a number since an instant:
// whether each is on, when its request left, when a conversation ended. A call
// whose node was lost may have rung: it counts, and so does one that rang or was
// answered and whose request left no mark. Nodes date by their own clocks, the
// database a call's registration: neither comes before that, nor is the end less
// long after it than a clock saw. A call that rang when its node was lost from sight
// is on for as long as the node may talk with the party unseen: what its agent allows,
// or $4, once it has rung; or until the node comes back and tells.
const historySQL = `
SELECT status IN ('queued', 'ringing', 'ongoing') OR (disconnection_reason = 'unknown_after_restart' AND answered_at IS NULL AND ended_at + ring_seconds * interval '1 second' +
		coalesce(nullif(max_duration_seconds, 0) * interval '1 second', (SELECT nullif(v.definition ->> 'max_duration_s', '0')::integer * interval '1 second'
			FROM agent_versions v WHERE v.agent_id = calls.agent_id AND v.version = calls.agent_version), $4) > clock_timestamp()) IS TRUE,
	CASE WHEN coalesce(dialed_at, ringing_at, answered_at) IS NOT NULL OR disconnection_reason IN ('unknown_after_restart', 'node_lost')
		THEN greatest(dialed_at, created_at) ELSE '-infinity' END,
	CASE WHEN answered_at IS NOT NULL AND answered_by IS DISTINCT FROM 'voicemail' AND answered_by IS DISTINCT FROM 'ivr' AND answered_by IS DISTINCT FROM 'fax'
		AND ended_at IS NOT NULL THEN greatest(ended_at, created_at, created_at + (ended_at - dialed_at)) ELSE '-infinity' END
FROM calls WHERE org_id = $1 AND to_number = ANY ($2) AND created_at > $3
ORDER BY 2`

// longestUnseen is how long a conversation is taken to last at most that nobody sees the
// end of, and that its agent does not bound.
const longestUnseen = 30 * time.Minute

// longestCall is from when a call is registered until it is over, at most.
const longestCall = 24 * time.Hour

// queueHistory asks what the organization did with a number, in campaigns and by
// single calls, and whether it is on a call now. Until the transaction is over nobody
// else may ask: caps would let two go at the same time.
func queueHistory(batch *pgx.Batch, orgID, number string, since time.Time, k *contact) {
	batch.Queue(`
		SELECT NOT pg_try_advisory_xact_lock(hashtextextended($1 || $2, 0))
			OR EXISTS (SELECT FROM contact_attempts WHERE org_id = $1 AND number = $2 AND ended_at IS NULL)`, orgID, number).
		QueryRow(func(row pgx.Row) error { return row.Scan(&k.Engaged) })
	batch.Queue(historySQL, orgID, spelling.All(control.Digits(number)), since, longestUnseen).Query(func(rows pgx.Rows) error {
		var on bool
		var dialled, talked time.Time
		_, err := pgx.ForEachRow(rows, []any{&on, (*instant)(&dialled), (*instant)(&talked)}, func() error {
			k.Engaged = k.Engaged || on
			if !dialled.IsZero() {
				k.History.Dials = append(k.History.Dials, dialled)
			}
			if talked.After(k.History.Talked) {
				k.History.Talked = talked
			}
			return nil
		})
		return err
	})
}

// leave ends the waiting of a contact.
func (b *Book) leave(ctx context.Context, tx pgx.Tx, id string, s campaigns.State, reason, governing string, now time.Time) error {
	_, err := tx.Exec(ctx, "UPDATE contacts SET state = $2, reason = $3, governing_cap = $4, updated_at = $5 WHERE id = $1", id, s, reason, governing, now)
	if err != nil {
		return fmt.Errorf("contact %s: %w", id, err)
	}
	return nil
}

// again is when a contact is looked at again of which nobody knows when.
const again = time.Minute

// putOff lets a contact wait on, until it is worth asking again.
func (b *Book) putOff(ctx context.Context, tx pgx.Tx, id string, v plan.Verdict, now time.Time) error {
	until := v.Until
	if until.IsZero() {
		until = now.Add(again)
	}
	var err error
	if v.Reason == plan.FrequencyCap {
		_, err = tx.Exec(ctx, "UPDATE contacts SET due_at = $2, next_attempt_at = $2, governing_cap = $3 WHERE id = $1", id, until, v.Cap)
	} else {
		_, err = tx.Exec(ctx, "UPDATE contacts SET due_at = $2, governing_cap = '' WHERE id = $1", id, until)
	}
	if err != nil {
		return fmt.Errorf("contact %s: %w", id, err)
	}
	return nil
}
