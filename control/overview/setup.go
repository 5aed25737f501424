package overview

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// Setup reports whether an organization has hidden the steps of its set-up, and whether it has a campaign.
func Setup(ctx context.Context, q db.Querier, orgID string) (hidden, hasCampaign bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce((settings->>'setup_hidden')::boolean, false), EXISTS (SELECT FROM campaigns WHERE org_id = $1)
		FROM organizations WHERE id = $1`, orgID).Scan(&hidden, &hasCampaign)
	return hidden, hasCampaign, db.Wrap(err, "set-up")
}

// HideSetup hides the steps of the set-up of an organization, or shows them again.
func HideSetup(ctx context.Context, q db.Querier, orgID string, hidden bool) error {
	_, err := db.Exec(ctx, q, "set-up", `
		UPDATE organizations SET settings = settings || jsonb_build_object('setup_hidden', $2::boolean) WHERE id = $1`, orgID, hidden)
	return err
}

// Recent is a recent call.
type Recent struct {
	ID             string
	Over, Answered bool
	Reason         string
}

// RecentCalls returns the last calls of an organization, the newest first.
func RecentCalls(ctx context.Context, q db.Querier, orgID string) ([]Recent, error) {
	return db.Collect(ctx, q, "recent calls", pgx.RowToStructByPos[Recent], `
		SELECT id, status IN ('ended', 'failed'), answered_at IS NOT NULL, coalesce(disconnection_reason, '')
		FROM calls WHERE org_id = $1 AND erased_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 20`, orgID)
}
