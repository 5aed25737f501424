package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// An AffectedCampaign is a campaign with contacts that an opt-out suppressed.
type AffectedCampaign struct {
	CampaignID string
	At         time.Time
}

// OptOut suppresses the contacts of a number in all live campaigns of an organization,
// and returns the affected campaigns. same has all digit forms of the number.
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
