// Package tallies looks after what is counted of campaigns as their contacts change: the
// database appends to it whenever one does, and here it is folded, and counted anew where
// it is not what it should be.
package tallies

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

// Tallies are those of all campaigns. They are safe for concurrent use.
type Tallies struct{ Pool *pgxpool.Pool }

// How often tallies are folded, and held against what they are of.
const (
	folds = 10 * time.Second
	looks = time.Hour
)

// Run mends tallies and folds them until ctx ends. Any number of servers may do so at a
// time.
func (t *Tallies) Run(ctx context.Context, log *slog.Logger) {
	fold, look := time.NewTicker(folds), time.NewTicker(looks)
	defer fold.Stop()
	defer look.Stop()
	t.mend(ctx, log) // a database may be as it was restored
	for {
		select {
		case <-fold.C:
			if err := t.Fold(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "tallies were not folded", "err", err)
			}
		case <-look.C:
			t.mend(ctx, log)
		case <-ctx.Done():
			return
		}
	}
}

func (t *Tallies) mend(ctx context.Context, log *slog.Logger) {
	mended, err := t.Mend(ctx)
	if len(mended) > 0 {
		log.WarnContext(ctx, "tallies were missing or wrong, and were counted anew", "campaigns", mended)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "tallies were not looked at", "err", err)
	}
}

// wrongSQL finds campaigns that have other contacts in a state, or other attempts, than
// their tallies say: they were emptied, or restored beside what they are of. One
// statement sees one instant, so what is on its way is in both or in neither.
const wrongSQL = `
SELECT campaign_id FROM (
	SELECT campaign_id, state, count(*) AS n FROM contacts GROUP BY 1, 2
	UNION ALL SELECT campaign_id, state, -sum(n) FROM contact_tallies GROUP BY 1, 2
) k GROUP BY campaign_id, state HAVING sum(n) <> 0
UNION
SELECT campaign_id FROM (
	SELECT campaign_id, count(*) AS n FROM contact_attempts GROUP BY 1
	UNION ALL SELECT campaign_id, -sum(n) FROM attempt_tallies GROUP BY 1
) x GROUP BY campaign_id HAVING sum(n) <> 0`

// Mend counts those tallies anew that are missing or wrong, and returns of which
// campaigns they were.
func (t *Tallies) Mend(ctx context.Context) (mended []string, err error) {
	var wrong []string
	err = t.long(ctx, func(tx pgx.Tx) (fault error) {
		found, fault := tx.Query(ctx, wrongSQL)
		if fault == nil {
			wrong, fault = pgx.CollectRows(found, pgx.RowTo[string])
		}
		return fault
	})
	for _, campaign := range wrong {
		fault := t.long(ctx, func(tx pgx.Tx) error { return recount(ctx, tx, campaign) })
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("of %s: %w", campaign, fault))
			continue
		}
		mended = append(mended, campaign)
	}
	if err != nil {
		return mended, fmt.Errorf("tallies: %w", err)
	}
	return mended, nil
}

// long is a transaction whose statements may take long.
func (t *Tallies) long(ctx context.Context, do func(pgx.Tx) error) error {
	return db.Tx(ctx, t.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '5min'"); err != nil {
			return err
		}
		return do(tx)
	})
}

// recount counts the tallies of a campaign anew. Who changes a contact meanwhile appends
// to them as ever: what goes and what comes is of one instant, and what is not seen then
// is neither.
func recount(ctx context.Context, tx pgx.Tx, campaignID string) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('tallies', 0))"); err != nil {
		return err // nobody folds meanwhile
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		WITH gone AS (DELETE FROM contact_tallies WHERE campaign_id = $1)
		INSERT INTO contact_tallies (campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, n, folded)
		SELECT campaign_id, state, reason, dnc_at_launch, governing_cap, cardinality(zones) > 1, CASE WHEN state = 'pending' THEN hours_group ELSE '' END,
			state = 'pending' AND attempts > 0, state = 'pending' AND coalesce(next_attempt_at, not_before, not_after) IS NOT NULL, count(*), true
		FROM contacts WHERE campaign_id = $1 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`, campaignID)
	batch.Queue(`
		WITH gone AS (DELETE FROM attempt_tallies WHERE campaign_id = $1)
		INSERT INTO attempt_tallies (campaign_id, outcome, n, folded)
		SELECT campaign_id, coalesce(outcome, ''), count(*), true FROM contact_attempts WHERE campaign_id = $1 GROUP BY 1, 2`, campaignID)
	return tx.SendBatch(ctx, batch).Close()
}

// Fold puts together what was appended to the tallies of campaigns, of one after the
// other, and to how often lists were changed, unless another server does.
func (t *Tallies) Fold(ctx context.Context) error {
	if _, err := t.alone(ctx, foldLists); err != nil {
		return fmt.Errorf("changes of lists: %w", err)
	}
	found, err := t.Pool.Query(ctx, "SELECT campaign_id FROM contact_tallies WHERE NOT folded UNION SELECT campaign_id FROM attempt_tallies WHERE NOT folded")
	if err != nil {
		return fmt.Errorf("tallies: %w", err)
	}
	loose, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("tallies: %w", err)
	}
	for _, campaign := range loose {
		mine, err := t.alone(ctx, func(ctx context.Context, tx pgx.Tx) error { return fold(ctx, tx, campaign) })
		if err != nil {
			return fmt.Errorf("tallies of %s: %w", campaign, err)
		}
		if !mine {
			break
		}
	}
	return nil
}

// alone does something in a transaction; it is not mine where another server is at it.
func (t *Tallies) alone(ctx context.Context, do func(context.Context, pgx.Tx) error) (mine bool, err error) {
	err = db.Tx(ctx, t.Pool, func(tx pgx.Tx) error {
		fault := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended('tallies', 0))").Scan(&mine)
		if fault != nil || !mine {
			return fault
		}
		return do(ctx, tx)
	})
	return mine, err
}

func foldLists(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		WITH gone AS (DELETE FROM suppression_changes
			WHERE org_id IN (SELECT org_id FROM suppression_changes GROUP BY 1 HAVING count(*) > 1) RETURNING *)
		INSERT INTO suppression_changes (org_id, n) SELECT org_id, sum(n) FROM gone GROUP BY 1`)
	return err
}

func fold(ctx context.Context, tx pgx.Tx, campaignID string) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		WITH gone AS (DELETE FROM contact_tallies WHERE campaign_id = $1 RETURNING *)
		INSERT INTO contact_tallies (campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, n, folded)
		SELECT campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, sum(n), true FROM gone
		GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 HAVING sum(n) <> 0`, campaignID)
	batch.Queue(`
		WITH gone AS (DELETE FROM attempt_tallies WHERE campaign_id = $1 RETURNING *)
		INSERT INTO attempt_tallies (campaign_id, outcome, n, folded)
		SELECT campaign_id, outcome, sum(n), true FROM gone GROUP BY 1, 2 HAVING sum(n) <> 0`, campaignID)
	return tx.SendBatch(ctx, batch).Close()
}
