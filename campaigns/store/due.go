package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// fewDue is how many campaigns are moved in one transaction.
const fewDue = 100

// Due returns some campaigns that something is to happen to: their start or
// their end came, or nobody is left to be called. They are locked; those that
// somebody else looks at are left to him.
func (s *Store) Due(ctx context.Context, tx pgx.Tx, now time.Time) ([]campaigns.Campaign, error) {
	found, err := tx.Query(ctx, "SELECT "+columns+from+`
		WHERE c.status IN ('scheduled', 'running', 'paused')
			AND (c.ends_at <= $1 OR c.status = 'scheduled' AND (c.starts_at IS NULL OR c.starts_at <= $1)
				OR c.status = 'running' AND NOT c.accepts_additions
					AND NOT EXISTS (SELECT FROM contacts k WHERE k.campaign_id = c.id AND k.state IN ('pending', 'in_call', 'awaiting')))
		ORDER BY c.id LIMIT $2 FOR UPDATE OF c SKIP LOCKED`, now, fewDue)
	if err != nil {
		return nil, fmt.Errorf("campaigns: %w", err)
	}
	all, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (campaigns.Campaign, error) { return scan(row) })
	if err != nil {
		return nil, fmt.Errorf("campaigns: %w", err)
	}
	return all, nil
}

// Drained tells whether nobody of a campaign is left to be called. It is asked
// with the campaign locked, so that no batch comes in between.
func (s *Store) Drained(ctx context.Context, q db.Querier, campaignID string) (bool, error) {
	var some bool
	err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM contacts WHERE campaign_id = $1 AND state IN ('pending', 'in_call', 'awaiting'))", campaignID).Scan(&some)
	if err != nil {
		return false, fmt.Errorf("contacts: %w", err)
	}
	return !some, nil
}

// Seen keeps which screen of a draft was shown last.
func (s *Store) Seen(ctx context.Context, q db.Querier, campaignID, fingerprint string) error {
	_, err := q.Exec(ctx, "UPDATE campaigns SET seen_fingerprint = $2 WHERE id = $1 AND status = 'draft'", campaignID, fingerprint)
	if err != nil {
		return fmt.Errorf("campaign %s: %w", campaignID, err)
	}
	return nil
}
