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
	LastTen        string // last ten digits
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

// Reassigned is a condition on a contact c: its number was reassigned since its
// consent.
const Reassigned = `(c.consent_at IS NOT NULL AND EXISTS (SELECT FROM reassigned_numbers r
	WHERE r.org_id = c.org_id AND r.number = c.number AND r.result = 'yes' AND r.consent_on >= (c.consent_at AT TIME ZONE 'UTC')::date))`

// SuppressReassigned suppresses waiting contacts whose numbers were reassigned since their consent (47 CFR 64.1200(m)),
// and returns how many. It suppresses contacts of one import or, if importID is empty, of the whole organization. A
// contact in a call is checked before its next call.
func SuppressReassigned(ctx context.Context, q db.Querier, orgID, importID string) (int, error) {
	return db.Exec(ctx, q, "reassigned numbers", `
		UPDATE contacts c SET state = 'suppressed', reason = 'reassigned_number', updated_at = now()
		WHERE c.org_id = $1 AND ($2 = '' OR c.import_id = $2) AND c.state IN ('pending', 'awaiting') AND `+Reassigned, orgID, importID)
}

// An AffectedCampaign is a campaign with contacts that an opt-out suppressed.
type AffectedCampaign struct {
	CampaignID string
	At         time.Time
}

// OptOut suppresses the contacts of a number in all live campaigns of an organization, and returns the affected
// campaigns. same has the digits of every form of the number.
func (Contacts) OptOut(ctx context.Context, tx pgx.Tx, orgID string, same []string) ([]AffectedCampaign, error) {
	return db.Collect(ctx, tx, "contacts", pgx.RowToStructByPos[AffectedCampaign], `
		WITH theirs AS (
			SELECT k.id FROM contacts k JOIN campaigns c ON c.id = k.campaign_id
			WHERE k.org_id = $1 AND k.number IN (SELECT '+' || n FROM unnest($2::text[]) n) AND k.state IN ('pending', 'awaiting')
				AND c.status IN ('scheduled', 'running', 'paused')
			ORDER BY k.id FOR UPDATE OF k
		), gone AS (
			UPDATE contacts k SET state = 'suppressed', reason = 'opted_out', next_attempt_at = NULL, updated_at = clock_timestamp()
			FROM theirs WHERE k.id = theirs.id AND k.state IN ('pending', 'awaiting') RETURNING k.campaign_id
		)
		SELECT DISTINCT campaign_id, clock_timestamp() FROM gone ORDER BY campaign_id`, orgID, same)
}
