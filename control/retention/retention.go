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
	most = 3650 // maximum of days
	// Retention of webhook deliveries after they were delivered or given up.
	keepTaken = 7 * 24 * time.Hour
	keepDead  = 30 * 24 * time.Hour
)

// Data are deleted in small steps, each with a transaction of its own, so that other work does not wait. A step with more
// than stepTime makes the next one smaller. After each step the database gets a pause that is as long as the step was.
const (
	minStep, firstStep, maxStep = 10, 50, 500 // calls, recordings or deliveries
	stepTime                    = 50 * time.Millisecond
	minPause, maxPause          = 5 * time.Millisecond, 5 * time.Second
)

// Rules are retention periods in days, counted from the creation of a call; 0 means that data are kept forever.
type Rules struct {
	Recordings int `json:"recordings_days,omitempty"  yaml:"recordings_days"`
	// Transcripts is the period for transcripts, analyses, variables, turns, signaling and notes.
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
	// Segments deletes the segments of recordings that no call needs; nil means that there are none.
	Segments func(ctx context.Context) error
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
	errs := []error{k.erased(ctx), k.segments(ctx), k.deliveries(ctx)}
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
	return k.inSteps(ctx, "expired recordings deleted", func(size int) (n int, more bool, _ error) {
		rows, err := k.Pool.Query(
			ctx,
			fmt.Sprintf("SELECT c.id, c.recording_key FROM calls c WHERE c.recording_key IS NOT NULL AND %s LIMIT %d", cond, size),
			args...)
		if err != nil {
			return 0, false, err
		}
		var ids []string
		var id, key string
		keys := map[string]string{}
		if _, err = pgx.ForEachRow(rows, []any{&id, &key}, func() error { keys[id] = key; return nil }); err != nil {
			return 0, false, err
		}
		var fault error
		for id, key := range keys {
			if fault = k.Bucket.Delete(ctx, key); fault != nil {
				break
			}
			ids = append(ids, id)
		}
		_, err = k.Pool.Exec(ctx, "UPDATE calls SET recording_key = NULL, recording_status = 'none' WHERE id = ANY ($1)", ids)
		return len(ids), len(keys) == size, errors.Join(fault, err)
	})
}

// hasContentSQL is true for calls that have content for deleteContent.
const hasContentSQL = `(call_analysis IS NOT NULL OR analysis_status <> 'none' OR variables::text <> '{}'
	OR EXISTS (SELECT FROM call_lines WHERE call_id = calls.id) OR EXISTS (SELECT FROM call_turns WHERE call_id = calls.id)
	OR EXISTS (SELECT FROM call_packs WHERE call_id = calls.id) OR EXISTS (SELECT FROM call_notes WHERE call_id = calls.id)
	OR EXISTS (SELECT FROM call_signalling WHERE call_id = calls.id) OR EXISTS (SELECT FROM webhook_deliveries WHERE call_id = calls.id))`

// transcripts deletes expired content, oldest first, and stores its progress. The next run starts at the first call
// that is not settled yet.
func (k *Purger) transcripts(ctx context.Context, o organization) error {
	cutoff, unsettled, from := k.before(o.rules.Transcripts), false, o.until
	return k.inSteps(ctx, "expired transcripts deleted", func(size int) (n int, more bool, _ error) {
		if !from.Before(cutoff) {
			return 0, false, nil
		}
		to := cutoff
		err := db.Tx(ctx, k.Pool, func(tx pgx.Tx) error {
			// A step includes all calls with the same timestamp as its last call.
			err := tx.QueryRow(ctx, `
				SELECT created_at + interval '1 microsecond' FROM calls
				WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at, id OFFSET $4 LIMIT 1`,
				o.id, from, cutoff, size-1).Scan(&to)
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
		from = to
		return n, true, err
	})
}

// calls deletes expired calls that have no recording.
func (k *Purger) calls(ctx context.Context, o organization) error {
	return k.delete(ctx, "expired calls deleted", "calls", "created_at",
		"org_id = $3 AND created_at < $4 AND recording_key IS NULL AND "+settledSQL, o.id, k.before(o.rules.Calls))
}

// erased completes Erase. It deletes recordings and stored responses at once. It deletes calls after MinDays, when no
// frequency cap counts them any more.
func (k *Purger) erased(ctx context.Context) error {
	err := k.blankResponses(ctx)
	if err == nil {
		err = k.deleteRecordings(ctx, "c.erased_at IS NOT NULL")
	}
	if err == nil {
		err = k.delete(ctx, "erased calls deleted", "calls", "erased_at",
			"erased_at IS NOT NULL AND created_at < $3 AND recording_key IS NULL", k.before(MinDays))
	}
	return db.Wrap(err, "erase")
}

// segments deletes the segments of recordings that no call needs.
func (k *Purger) segments(ctx context.Context) error {
	if k.Segments == nil {
		return nil
	}
	return k.Segments(ctx)
}

// deliveries deletes old webhook deliveries.
func (k *Purger) deliveries(ctx context.Context) error {
	for state, keep := range map[string]time.Duration{"delivered": keepTaken, "dead": keepDead} {
		err := k.delete(ctx, "old webhook deliveries deleted", "webhook_deliveries", "settled_at",
			"state = '"+state+"' AND settled_at < $3", k.now().Add(-keep))
		if err != nil {
			return db.Wrap(err, "webhook deliveries")
		}
	}
	return nil
}

// delete deletes the rows that meet a condition, oldest first by the column at, which has an index. A step starts where
// the last one ended, so that it does not read the rows again that the last one deleted. It skips rows that another node
// deletes. The parameters of the condition start at $3.
func (k *Purger) delete(ctx context.Context, what, table, at, cond string, args ...any) error {
	sql := fmt.Sprintf(`
		WITH gone AS (DELETE FROM %[1]s WHERE id IN (
			SELECT id FROM %[1]s WHERE %[2]s >= $1 AND %[3]s ORDER BY %[2]s LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING %[2]s)
		SELECT count(*), coalesce(max(%[2]s), $1) FROM gone`, table, at, cond)
	from := time.Unix(0, 0)
	return k.inSteps(ctx, what, func(size int) (n int, more bool, _ error) {
		err := k.Pool.QueryRow(ctx, sql, append([]any{from, size}, args...)...).Scan(&n, &from)
		return n, n == size, err
	})
}

// inSteps runs step until there is no more. step gets the size of the step, and returns the number of deleted items.
func (k *Purger) inSteps(ctx context.Context, what string, step func(size int) (n int, more bool, _ error)) (err error) {
	sum := 0
	defer func() {
		if k.Log != nil && sum > 0 {
			k.Log.InfoContext(ctx, what, "n", sum)
		}
	}()
	for size, more := firstStep, true; more; {
		began := time.Now()
		var n int
		n, more, err = step(size)
		if sum += n; err != nil {
			return err
		}
		took := time.Since(began)
		if size = nextSize(size, took); !more {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(max(took, minPause), maxPause)):
		}
	}
	return nil
}

// nextSize returns the size of the step after one of this size.
func nextSize(size int, took time.Duration) int {
	switch {
	case took > stepTime:
		return max(size/2, minStep)
	case took < stepTime/2:
		return min(2*size, maxStep)
	}
	return size
}
