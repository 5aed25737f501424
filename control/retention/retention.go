// Package retention forgets calls: those that an organization keeps for so long and
// no longer, and those that it is asked to erase. It never touches the list of
// numbers that are not to be called, which must be kept for five years (47 CFR
// 64.1200(d)).
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Least is how long what is kept for some time is kept at least, in days: caps on
// how often a number is called look back seven days (12 CFR 1006.14(b)(2)), and
// links to recordings are good for as long.
const Least = 8

const (
	most  = 3650 // days
	batch = 500  // calls a transaction
	// Notices that were taken, and those that were given up.
	keepTaken = 7 * 24 * time.Hour
	keepDead  = 30 * 24 * time.Hour
)

// Rules are for how many days, from its creation, something of a call is kept. 0
// is for ever.
type Rules struct {
	Recordings int `json:"recordings_days,omitempty"  yaml:"recordings_days"`
	// Transcripts, analyses, variables, turns and signalling.
	Transcripts int `json:"transcripts_days,omitempty" yaml:"transcripts_days"`
	// The whole.
	Calls int `json:"calls_days,omitempty"       yaml:"calls_days"`
}

// Check returns what is wrong with rules.
func (r Rules) Check() error {
	for name, days := range map[string]int{"recordings_days": r.Recordings, "transcripts_days": r.Transcripts, "calls_days": r.Calls} {
		if days != 0 && (days < Least || days > most) {
			return fmt.Errorf("%s: %d: use %d to %d, or 0 for ever", name, days, Least, most)
		}
	}
	return nil
}

// A Bucket keeps recordings. Delete is no error where there is nothing.
type Bucket interface {
	Delete(ctx context.Context, key string) error
}

// A Keeper forgets what is due.
type Keeper struct {
	Pool   *pgxpool.Pool
	Bucket Bucket
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// An organization is one that has rules.
type organization struct {
	id    string
	rules Rules
	until time.Time // words up to then are forgotten
}

// Pass forgets what is due now. What fails for one organization does not keep
// the others waiting.
func (k *Keeper) Pass(ctx context.Context) error {
	rows, err := k.Pool.Query(ctx, `
		SELECT id, settings->'retention', greatest(forgotten_until, 'epoch') FROM organizations
		WHERE settings ? 'retention' AND settings->'retention' <> 'null' ORDER BY id`)
	if err != nil {
		return fmt.Errorf("retention: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o organization, err error) {
		return o, row.Scan(&o.id, &o.rules, &o.until)
	})
	if err != nil {
		return fmt.Errorf("retention: %w", err)
	}
	errs := []error{k.erased(ctx), k.notices(ctx)}
	for _, o := range all {
		for _, forget := range []func(context.Context, organization) error{k.recordings, k.words, k.calls} {
			if err := forget(ctx, o); err != nil {
				errs = append(errs, fmt.Errorf("retention of %s: %w", o.id, err))
				break
			}
		}
	}
	return errors.Join(errs...)
}

func (k *Keeper) now() time.Time {
	if k.Now == nil {
		return time.Now()
	}
	return k.Now()
}

// before is the moment that is so many days ago; 0 is never.
func (k *Keeper) before(days int) time.Time {
	if days == 0 {
		return time.Unix(0, 0)
	}
	return k.now().AddDate(0, 0, -days)
}

// recordings lets go of those that are too old, and of those of calls that are:
// a call is never forgotten before its recording.
func (k *Keeper) recordings(ctx context.Context, o organization) error {
	cutoff := k.before(o.rules.Recordings)
	if whole := k.before(o.rules.Calls); whole.After(cutoff) {
		cutoff = whole
	}
	return k.letGo(ctx, "c.org_id = $1 AND c.created_at < $2", o.id, cutoff)
}

// letGo deletes the recordings of the calls c that meet a condition: the file, and
// then the word of it. A crash in between leaves what the next pass does again.
func (k *Keeper) letGo(ctx context.Context, cond string, args ...any) error {
	for {
		rows, err := k.Pool.Query(ctx, fmt.Sprintf("SELECT c.id, c.recording_key FROM calls c WHERE c.recording_key IS NOT NULL AND %s LIMIT %d", cond, batch), args...)
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
		k.tell(ctx, "recordings are forgotten", len(ids))
		if len(keys) < batch {
			return nil
		}
	}
}

// wordy calls have something left of what forgetWords lets go.
const wordy = `(call_analysis IS NOT NULL OR analysis_status <> 'none' OR variables::text <> '{}'
	OR EXISTS (SELECT FROM call_lines WHERE call_id = calls.id) OR EXISTS (SELECT FROM call_turns WHERE call_id = calls.id)
	OR EXISTS (SELECT FROM call_signalling WHERE call_id = calls.id) OR EXISTS (SELECT FROM webhook_deliveries WHERE call_id = calls.id))`

// words lets go of what was said in calls that are too old, the oldest first, and
// remembers how far it came. From the first call that is not settled yet the next
// pass looks again.
func (k *Keeper) words(ctx context.Context, o organization) error {
	cutoff, held := k.before(o.rules.Transcripts), false
	for from := o.until; from.Before(cutoff); {
		n, to := 0, cutoff
		err := pgx.BeginFunc(ctx, k.Pool, func(tx pgx.Tx) error {
			// A batch, and all calls of the same moment as its last.
			err := tx.QueryRow(ctx, fmt.Sprintf(`
				SELECT created_at + interval '1 microsecond' FROM calls
				WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at, id OFFSET %d LIMIT 1`, batch-1), o.id, from, cutoff).Scan(&to)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			rows, err := tx.Query(ctx, "SELECT id FROM calls WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 AND "+settled+" AND "+wordy, o.id, from, to)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			n = len(ids)
			if err = forgetWords(ctx, tx, ids); err != nil || held {
				return err
			}
			return tx.QueryRow(ctx, `
				UPDATE organizations SET forgotten_until = coalesce(
					(SELECT min(created_at) FROM calls WHERE org_id = $1 AND created_at >= $2 AND created_at < $3 AND NOT (`+settled+`)), $3)
				WHERE id = $1 RETURNING forgotten_until < $3`, o.id, from, to).Scan(&held)
		})
		if err != nil {
			return err
		}
		k.tell(ctx, "transcripts are forgotten", n)
		from = to
	}
	return nil
}

// calls deletes those that are too old and have no recording any more.
func (k *Keeper) calls(ctx context.Context, o organization) error {
	return k.delete(ctx, "calls are forgotten", `
		DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE org_id = $1 AND created_at < $2 AND recording_key IS NULL AND `+settled+` LIMIT $3)`,
		o.id, k.before(o.rules.Calls), batch)
}

// erased ends what Erase began: recordings and what is repeated to clients go at
// once, and calls once no cap looks back to them.
func (k *Keeper) erased(ctx context.Context) error {
	err := k.answers(ctx)
	if err == nil {
		err = k.letGo(ctx, "c.erased_at IS NOT NULL")
	}
	if err == nil {
		err = k.delete(ctx, "erased calls are forgotten", `
			DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE erased_at IS NOT NULL AND created_at < $1 AND recording_key IS NULL LIMIT $2)`,
			k.before(Least), batch)
	}
	if err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	return nil
}

// notices lets go of those that are over and done with.
func (k *Keeper) notices(ctx context.Context) error {
	err := k.delete(ctx, "notices are forgotten", `
		DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries
			WHERE state = 'delivered' AND settled_at < $1 OR state = 'dead' AND settled_at < $2 LIMIT $3)`,
		k.now().Add(-keepTaken), k.now().Add(-keepDead), batch)
	if err != nil {
		return fmt.Errorf("notices: %w", err)
	}
	return nil
}

// delete deletes some at a time until none are left; the last argument is how many.
func (k *Keeper) delete(ctx context.Context, what, sql string, args ...any) error {
	for {
		tag, err := k.Pool.Exec(ctx, sql, args...)
		if err != nil {
			return err
		}
		k.tell(ctx, what, int(tag.RowsAffected()))
		if tag.RowsAffected() < batch {
			return nil
		}
	}
}

func (k *Keeper) tell(ctx context.Context, what string, n int) {
	if k.Log != nil && n > 0 {
		k.Log.InfoContext(ctx, what, "n", n)
	}
}
