package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// dueBatch is the number of campaigns per transaction.
const dueBatch = 100

// Due returns campaigns whose start or end has come, or that have no contact left, and
// locks them. It skips those that another transaction holds.
func (s *Store) Due(ctx context.Context, tx pgx.Tx, now time.Time) ([]campaigns.Campaign, error) {
	return db.Collect(ctx, tx, "campaigns", scanRow, "SELECT "+columns+from+
		"WHERE "+isDueSQL("$1")+" ORDER BY c.id LIMIT $2 FOR UPDATE OF c SKIP LOCKED", now, dueBatch)
}

// isDueSQL returns a condition that is true for a campaign c that Due returns. now is an SQL expression.
func isDueSQL(now string) string {
	return `c.status IN ('scheduled', 'running', 'paused')
		AND (c.ends_at <= ` + now + ` OR c.status = 'scheduled' AND (c.starts_at IS NULL OR c.starts_at <= ` + now + `)
			OR c.status = 'running' AND NOT c.accepts_additions
				AND NOT EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state IN ('pending', 'in_call', 'awaiting')))`
}

// AnyDue reports whether there is a campaign for Due, without a lock. If now is zero, it uses the time of the database.
// It returns the time that it used.
func (s *Store) AnyDue(ctx context.Context, q db.Querier, now time.Time) (at time.Time, due bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT now.at, EXISTS (SELECT FROM campaigns c WHERE `+isDueSQL("now.at")+`)
		FROM (SELECT coalesce($1::timestamptz, clock_timestamp()) AS at) now`, nullTime(now)).Scan(&at, &due)
	return at, due, db.Wrap(err, "campaigns")
}

// Running returns the running campaigns. If it returns campaigns and an error, the campaigns are valid, and the error
// is about other campaigns.
func (s *Store) Running(ctx context.Context, q db.Querier) ([]campaigns.Campaign, error) {
	return collectValid(ctx, q, "WHERE c.status = 'running' AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp()) ORDER BY c.id")
}

// ByID returns campaigns, as Running does.
func (s *Store) ByID(ctx context.Context, q db.Querier, ids []string) ([]campaigns.Campaign, error) {
	return collectValid(ctx, q, "WHERE c.id = ANY ($1)", ids)
}

// collectValid returns campaigns. An invalid one does not affect the others.
func collectValid(ctx context.Context, q db.Querier, where string, args ...any) (all []campaigns.Campaign, err error) {
	var faults []error
	_, err = db.Collect(ctx, q, "campaigns", func(row pgx.CollectableRow) (struct{}, error) {
		c, fault := scanCampaign(row)
		if fault != nil {
			faults = append(faults, fault)
		} else {
			all = append(all, c)
		}
		return struct{}{}, nil
	}, "SELECT "+columns+from+where, args...)
	if err != nil {
		return nil, err
	}
	return append([]campaigns.Campaign{}, all...), errors.Join(faults...)
}

// IsDrained reports whether no contact of a campaign is left to call. The caller holds
// the lock of the campaign, so that no batch is added in between.
func (s *Store) IsDrained(ctx context.Context, q db.Querier, campaignID string) (bool, error) {
	var waiting bool
	const query = "SELECT EXISTS (SELECT FROM contacts WHERE campaign_id = $1 AND state IN ('pending', 'in_call', 'awaiting'))"
	err := q.QueryRow(ctx, query, campaignID).Scan(&waiting)
	if err != nil {
		return false, fmt.Errorf("contacts: %w", err)
	}
	return !waiting, nil
}

// SaveSeenScreen stores which screening of a draft was shown last.
func (s *Store) SaveSeenScreen(ctx context.Context, q db.Querier, campaignID, fingerprint string) error {
	const sql = "UPDATE campaigns SET seen_fingerprint = $2 WHERE id = $1 AND status = 'draft'"
	_, err := db.Exec(ctx, q, "campaign "+campaignID, sql, campaignID, fingerprint)
	return err
}
