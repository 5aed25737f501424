package store

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

// A TallyFolder maintains the tallies of all campaigns. It is safe for concurrent use.
type TallyFolder struct{ Pool *pgxpool.Pool }

// Intervals of Run.
const (
	foldEvery  = 10 * time.Second
	checkEvery = time.Hour
)

// Run folds tallies and repairs wrong ones until ctx ends. Any number of nodes may run it.
func (t *TallyFolder) Run(ctx context.Context, log *slog.Logger) {
	fold, check := time.NewTicker(foldEvery), time.NewTicker(checkEvery)
	defer fold.Stop()
	defer check.Stop()
	t.repair(ctx, log) // the database may have been restored
	for {
		select {
		case <-fold.C:
			if err := t.Fold(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "failed to update the counters of campaigns", "err", err)
			}
		case <-check.C:
			t.repair(ctx, log)
		case <-ctx.Done():
			return
		}
	}
}

func (t *TallyFolder) repair(ctx context.Context, log *slog.Logger) {
	repaired, err := t.Repair(ctx)
	if len(repaired) > 0 {
		log.WarnContext(ctx, "corrected missing or wrong counters of campaigns", "campaigns", repaired)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "failed to check the counters of campaigns", "err", err)
	}
}

// wrongTalliesSQL finds campaigns whose tallies differ from their contacts or attempts, because tallies were deleted,
// restored from another backup, or added by an upgrade. One statement sees one snapshot, so changes in progress are in
// both or in neither.
const wrongTalliesSQL = `
SELECT campaign_id FROM (
	SELECT campaign_id, state, count(*) AS n FROM contacts GROUP BY 1, 2
	UNION ALL SELECT campaign_id, state, -sum(n) FROM contact_tallies GROUP BY 1, 2
) k GROUP BY campaign_id, state HAVING sum(n) <> 0
UNION
SELECT campaign_id FROM (
	SELECT campaign_id, count(*) AS n FROM contact_attempts GROUP BY 1
	UNION ALL SELECT campaign_id, -sum(n) FROM attempt_tallies GROUP BY 1
) x GROUP BY campaign_id HAVING sum(n) <> 0
UNION
SELECT campaign_id FROM (
	SELECT campaign_id, count(*) AS n FROM contacts WHERE ` + timed + ` GROUP BY 1
	UNION ALL SELECT campaign_id, -sum(n) FROM contact_times GROUP BY 1
) y GROUP BY campaign_id HAVING sum(n) <> 0`

// Repair recounts tallies that are missing or wrong, and returns their campaigns.
func (t *TallyFolder) Repair(ctx context.Context) (repaired []string, err error) {
	var wrong []string
	err = t.inLongTx(ctx, func(tx pgx.Tx) (fault error) {
		wrong, fault = db.Collect(ctx, tx, "wrong tallies", pgx.RowTo[string], wrongTalliesSQL)
		return fault
	})
	for _, campaign := range wrong {
		fault := t.inLongTx(ctx, func(tx pgx.Tx) error { return recount(ctx, tx, campaign) })
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("campaign %s: %w", campaign, fault))
			continue
		}
		repaired = append(repaired, campaign)
	}
	fault := t.inLongTx(ctx, func(tx pgx.Tx) error {
		costs, wrong := repairCosts(ctx, tx)
		repaired = append(repaired, costs...)
		return wrong
	})
	if err = errors.Join(err, fault); err != nil {
		return repaired, fmt.Errorf("tallies: %w", err)
	}
	return repaired, nil
}

// inLongTx runs do in a transaction with a longer statement timeout.
func (t *TallyFolder) inLongTx(ctx context.Context, do func(pgx.Tx) error) error {
	return db.Tx(ctx, t.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '5min'"); err != nil {
			return err
		}
		return do(tx)
	})
}

// recount replaces the tallies of a campaign. Concurrent changes of contacts may append to the tallies, because one
// snapshot decides what is deleted and what is counted.
func recount(ctx context.Context, tx pgx.Tx, campaignID string) error {
	// The lock keeps Fold out.
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('tallies', 0))"); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		WITH gone AS (DELETE FROM contact_tallies WHERE campaign_id = $1)
		INSERT INTO contact_tallies (campaign_id, state, reason, at_launch, cap, ambiguous, hours_group, tried, timed, n, folded)
		SELECT campaign_id, state, reason, dnc_at_launch, governing_cap, cardinality(zones) > 1, CASE WHEN state = 'pending' THEN hours_group ELSE '' END,
			state = 'pending' AND attempts > 0, state = 'pending' AND coalesce(next_attempt_at, not_before, not_after) IS NOT NULL, count(*), true
		FROM contacts WHERE campaign_id = $1 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`, campaignID)
	batch.Queue("WITH gone AS (DELETE FROM contact_times WHERE campaign_id = $1) "+
		"INSERT INTO contact_times (campaign_id, "+timeKeys+", n, folded) SELECT campaign_id, "+timeKeysOfContacts+", count(*), true "+
		"FROM contacts WHERE campaign_id = $1 AND "+timed+" GROUP BY 1, 2, 3, 4, 5, 6", campaignID)
	batch.Queue(`
		WITH gone AS (DELETE FROM attempt_tallies WHERE campaign_id = $1)
		INSERT INTO attempt_tallies (campaign_id, outcome, n, folded)
		SELECT campaign_id, coalesce(outcome, ''), count(*), true FROM contact_attempts WHERE campaign_id = $1 GROUP BY 1, 2`, campaignID)
	return tx.SendBatch(ctx, batch).Close()
}

// Fold merges the appended entries of tallies, campaign by campaign, and those of list changes and costs. It does
// nothing while another node does so.
func (t *TallyFolder) Fold(ctx context.Context) error {
	if _, err := t.tryExclusive(ctx, foldListChanges); err != nil {
		return fmt.Errorf("changes of lists: %w", err)
	}
	if _, err := t.tryExclusive(ctx, foldCosts); err != nil {
		return fmt.Errorf("costs: %w", err)
	}
	const unfolded = "SELECT campaign_id FROM contact_tallies WHERE NOT folded UNION SELECT campaign_id FROM contact_times WHERE NOT folded " +
		"UNION SELECT campaign_id FROM attempt_tallies WHERE NOT folded"
	all, err := db.Collect(ctx, t.Pool, "tallies", pgx.RowTo[string], unfolded)
	if err != nil {
		return err
	}
	for _, campaign := range all {
		locked, err := t.tryExclusive(ctx, func(ctx context.Context, tx pgx.Tx) error { return fold(ctx, tx, campaign) })
		if err != nil {
			return fmt.Errorf("tallies of %s: %w", campaign, err)
		}
		if !locked {
			break
		}
	}
	return nil
}

// tryExclusive runs do in a transaction; locked is false if another node holds the lock.
func (t *TallyFolder) tryExclusive(ctx context.Context, do func(context.Context, pgx.Tx) error) (locked bool, err error) {
	err = db.Tx(ctx, t.Pool, func(tx pgx.Tx) error {
		fault := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended('tallies', 0))").Scan(&locked)
		if fault != nil || !locked {
			return fault
		}
		return do(ctx, tx)
	})
	return locked, err
}

func foldListChanges(ctx context.Context, tx pgx.Tx) error {
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
	// A campaign may have thousands of rows of times. Only those that changed are written again.
	batch.Queue(`
		WITH loose AS (DELETE FROM contact_times WHERE campaign_id = $1 AND NOT folded RETURNING *),
		gone AS (DELETE FROM contact_times WHERE campaign_id = $1 AND folded AND (`+timeKeys+`) IN (SELECT `+timeKeys+` FROM loose) RETURNING *)
		INSERT INTO contact_times (campaign_id, `+timeKeys+`, n, folded)
		SELECT campaign_id, `+timeKeys+`, sum(n), true FROM (SELECT * FROM loose UNION ALL SELECT * FROM gone) x
		GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(n) <> 0`, campaignID)
	batch.Queue(`
		WITH gone AS (DELETE FROM attempt_tallies WHERE campaign_id = $1 RETURNING *)
		INSERT INTO attempt_tallies (campaign_id, outcome, n, folded)
		SELECT campaign_id, outcome, sum(n), true FROM gone GROUP BY 1, 2 HAVING sum(n) <> 0`, campaignID)
	return tx.SendBatch(ctx, batch).Close()
}
