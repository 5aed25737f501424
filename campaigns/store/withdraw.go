package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control/db"
)

// An AddressedContact is a contact that a request names.
type AddressedContact struct {
	ID, CampaignID string
	Number         string // E.164
	LastTen        string // digits
	State          campaigns.State
	Reason         string
}

// Find returns and locks contacts of an organization's live campaigns by the last ten
// digits of their numbers or by their ids.
func (Contacts) Find(ctx context.Context, tx pgx.Tx, orgID string, lastTen, ids []string) ([]AddressedContact, error) {
	return db.Collect(ctx, tx, "contacts", pgx.RowToStructByPos[AddressedContact], `
		SELECT k.id, k.campaign_id, k.number, k.last_ten, k.state, k.reason FROM contacts k
		JOIN campaigns c ON c.id = k.campaign_id
		WHERE k.org_id = $1 AND (k.last_ten = ANY ($2) OR k.id = ANY ($3)) AND c.status IN ('scheduled', 'running', 'paused')
		ORDER BY k.id FOR UPDATE OF k`, orgID, lastTen, ids)
}

// Withdraw suppresses contacts as withdrawn.
func (Contacts) Withdraw(ctx context.Context, tx pgx.Tx, ids []string, now time.Time) error {
	_, err := db.Exec(ctx, tx, "contacts", `
		UPDATE contacts SET state = 'suppressed', reason = 'withdrawn_by_client', next_attempt_at = NULL, updated_at = $2
		WHERE id = ANY ($1) AND state IN ('pending', 'awaiting')`, ids, now)
	return err
}

// KnownNumbers returns which numbers have a contact in a campaign.
func (Contacts) KnownNumbers(ctx context.Context, q db.Querier, c campaigns.Campaign, numbers []string) (map[string]bool, error) {
	return collectSet(ctx, q, "contacts", `
		SELECT DISTINCT k.number FROM unnest($3::text[]) AS x (e164) JOIN contacts k ON k.org_id = $1 AND k.last_ten = right(x.e164, 10) AND k.number = x.e164
		WHERE k.campaign_id = $2`, c.OrgID, c.ID, numbers)
}
