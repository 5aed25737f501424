// Package retention deletes the data of calls after a retention period or on request. It never deletes numbers from
// the suppression list, because the law requires keeping them for five years (47 CFR 64.1200(d)).
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
)

// MinDays is the minimum retention in days. Frequency caps count calls for seven days (12 CFR 1006.14(b)(2)), and links
// to recordings are valid for seven days.
const MinDays = 8

const (
	most  = 3650 // maximum of days
	batch = 500  // calls in one transaction
	// Retention of webhook deliveries after they were delivered or given up.
	keepTaken = 7 * 24 * time.Hour
	keepDead  = 30 * 24 * time.Hour
)

// Rules are retention periods in days, counted from the creation of a call; 0 means that data are kept forever.
type Rules struct {
	Recordings int `json:"recordings_days,omitempty"  yaml:"recordings_days"`
	// Transcripts is the period for transcripts, analyses, variables, turns and signaling.
	Transcripts int `json:"transcripts_days,omitempty" yaml:"transcripts_days"`
	// Calls is the period for whole calls.
	Calls int `json:"calls_days,omitempty"       yaml:"calls_days"`
}

// Check returns an error if the rules are invalid.
func (r Rules) Check() error {
	for name, days := range map[string]int{"recordings_days": r.Recordings, "transcripts_days": r.Transcripts, "calls_days": r.Calls} {
		if days != 0 && (days < MinDays || days > most) {
			return fmt.Errorf("%s: %d: use %d to %d, or 0 to keep forever", name, days, MinDays, most)
		}
	}
	return nil
}

// Bucket deletes recordings. Deleting a file that does not exist succeeds.
type Bucket interface {
	Delete(ctx context.Context, key string) error
}

// Purger deletes data whose retention period is over.
type Purger struct {
	Pool   *pgxpool.Pool
	Bucket Bucket
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// organization is an organization that has retention rules.
type organization struct {
	id    string
	rules Rules
	until time.Time // time up to which transcripts have been deleted
}

// PurgeDue deletes all data whose retention period is over. A failure for one organization does not delay others.
func (k *Purger) PurgeDue(ctx context.Context) error {
	all, err := db.Collect(ctx, k.Pool, "retention", func(row pgx.CollectableRow) (o organization, err error) {
		return o, row.Scan(&o.id, &o.rules, &o.until)
	}, `
		SELECT id, settings->'retention', greatest(forgotten_until, 'epoch') FROM organizations
		WHERE settings ? 'retention' AND settings->'retention' <> 'null' ORDER BY id`)
	if err != nil {
		return err
	}
	errs := []error{k.erased(ctx), k.deliveries(ctx)}
	for _, o := range all {
		for _, purge := range []func(context.Context, organization) error{k.recordings, k.transcripts, k.calls} {
			if err := purge(ctx, o); err != nil {
				errs = append(errs, fmt.Errorf("retention of %s: %w", o.id, err))
				break
			}
		}
	}
	return errors.Join(errs...)
}

func (k *Purger) now() time.Time {
	if k.Now == nil {
		return time.Now()
	}
	return k.Now()
}

// before returns the current time minus days, or 1970 if days is 0 (keep forever).
func (k *Purger) before(days int) time.Time {
	if days == 0 {
		return time.Unix(0, 0)
	}
	return k.now().AddDate(0, 0, -days)
}

// recordings deletes expired recordings. It also deletes the recordings of expired calls, because a call is deleted
// only after its recording.
func (k *Purger) recordings(ctx context.Context, o organization) error {
	cutoff := k.before(o.rules.Recordings)
	if whole := k.before(o.rules.Calls); whole.After(cutoff) {
		cutoff = whole
	}
	return k.deleteRecordings(ctx, "c.org_id = $1 AND c.created_at < $2", o.id, cutoff)
}

// deleteRecordings deletes the recordings of the calls c that meet a condition: first the files, then their keys in the
// database. After a crash between the two, the next run deletes the files again.
func (k *Purger) deleteRecordings(ctx context.Context, cond string, args ...any) error {
	for {
		rows, err := k.Pool.Query(
			ctx,
			fmt.Sprintf("SELECT c.id, c.recording_key FROM calls c WHERE c.recording_key IS NOT NULL AND %s LIMIT %d", cond, batch),
			args...)
		if err != nil {
			return err
		}
		var ids []string
		var id, key string
		keys := map[string]string{}
		if _, err = pgx.ForEachRow(rows, []any{&id, &key}, func() error { keys[id] = key; return nil }); err != nil {
			return err
		}
		var fault error
		for id, key := range keys {
			if fault = k.Bucket.Delete(ctx, key); fault != nil {
				break
			}
			ids = append(ids, id)
		}
		_, err = k.Pool.Exec(ctx, "UPDATE calls SET recording_key = NULL, recording_status = 'none' WHERE id = ANY ($1)", ids)
		if fault != nil || err != nil {
			return errors.Join(fault, err)
		}
		k.logCount(ctx, "expired recordings deleted", len(ids))
		if len(keys) < batch {
			return nil
		}
	}
}

// hasContentSQL is true for calls that have content for deleteContent.
const hasContentSQL = `(call_analysis IS NOT NULL OR analysis_status <> 'none' OR variables::text <> '{}'
	OR EXISTS (SELECT FROM call_lines WHERE call_id = calls.id) OR EXISTS (SELECT FROM call_turns WHERE call_id = calls.id)
	OR EXISTS (SELECT FROM call_signalling WHERE call_id = calls.id) OR EXISTS (SELECT FROM webhook_deliveries WHERE call_id = calls.id))`

// transcripts deletes expired content, oldest first, and stores its progress. The next run starts at the first call
// that is not settled yet.
func (k *Purger) transcripts(ctx context.Context, o organization) error {
	cutoff, unsettled := k.before(o.rules.Transcripts), false
	for from := o.until; from.Before(cutoff); {
		n, to := 0, cutoff
		err := pgx.BeginFunc(ctx, k.Pool, func(tx pgx.Tx) error {
			// A batch includes all calls with the same timestamp as its last call.
			err := tx.QueryRow(ctx, fmt.Sprintf(`
				SELECT created_at + interval '1 microsecond' FROM calls
				WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at, id OFFSET %d LIMIT 1`, batch-1), o.id, from, cutoff).Scan(&to)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			ids, err := db.Collect(ctx, tx, "", pgx.RowTo[string], `
				SELECT id FROM calls WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 AND `+settledSQL+" AND "+hasContentSQL, o.id, from, to)
			if err != nil {
				return err
			}
			n = len(ids)
			if err = deleteContent(ctx, tx, ids); err != nil || unsettled {
				return err
			}
			return tx.QueryRow(ctx, `
				UPDATE organizations SET forgotten_until = coalesce(
					(SELECT min(created_at) FROM calls WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 AND NOT (`+settledSQL+`)), $3)
				WHERE id = $1 RETURNING forgotten_until < $3`, o.id, from, to).Scan(&unsettled)
		})
		if err != nil {
			return err
		}
		k.logCount(ctx, "expired transcripts deleted", n)
		from = to
	}
	return nil
}

// calls deletes expired calls that have no recording.
func (k *Purger) calls(ctx context.Context, o organization) error {
	return k.delete(ctx, "expired calls deleted", `
		DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE org_id = $1 AND created_at < $2 AND recording_key IS NULL AND `+settledSQL+` LIMIT $3)`,
		o.id, k.before(o.rules.Calls), batch)
}

// erased completes Erase. It deletes recordings and stored responses at once. It deletes calls after MinDays, when no
// frequency cap counts them any more.
func (k *Purger) erased(ctx context.Context) error {
	err := k.blankResponses(ctx)
	if err == nil {
		err = k.deleteRecordings(ctx, "c.erased_at IS NOT NULL")
	}
	if err == nil {
		err = k.delete(ctx, "erased calls deleted", `
			DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE erased_at IS NOT NULL AND created_at < $1 AND recording_key IS NULL LIMIT $2)`,
			k.before(MinDays), batch)
	}
	return db.Wrap(err, "erase")
}

// deliveries deletes old webhook deliveries.
func (k *Purger) deliveries(ctx context.Context) error {
	err := k.delete(ctx, "old webhook deliveries deleted", `
		DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries
			WHERE state = 'delivered' AND settled_at < $1 OR state = 'dead' AND settled_at < $2 LIMIT $3)`,
		k.now().Add(-keepTaken), k.now().Add(-keepDead), batch)
	return db.Wrap(err, "webhook deliveries")
}

// delete deletes rows in batches. The last argument of sql is the size of a batch.
func (k *Purger) delete(ctx context.Context, what, sql string, args ...any) error {
	for {
		tag, err := k.Pool.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		k.logCount(ctx, what, int(tag.RowsAffected()))
		if tag.RowsAffected() < batch {
			return nil
		}
	}
}

func (k *Purger) logCount(ctx context.Context, what string, n int) {
	if k.Log != nil && n > 0 {
		k.Log.InfoContext(ctx, what, "n", n)
	}
}
