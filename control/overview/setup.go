package overview

import (
	"context"
	"errors"

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
	ID     string
	Over   bool
	Reason string
}

// newestOfTrunk limits the newest calls of each trunk in which NewestPhoneCall looks for one that is not erased.
const newestOfTrunk = 20

// usedTrunksSQL selects the trunks of the phone calls of an organization, also deleted trunks. It reads one entry of an
// index for each trunk.
const usedTrunksSQL = `
WITH RECURSIVE used AS (
	SELECT min(trunk_id) AS id FROM calls WHERE org_id = $1 AND trunk_id > ''
	UNION ALL SELECT (SELECT min(trunk_id) FROM calls WHERE org_id = $1 AND trunk_id > used.id) FROM used WHERE used.id IS NOT NULL)
`

// NewestPhoneCall returns the newest phone call of an organization, or nil if there is none.
func NewestPhoneCall(ctx context.Context, q db.Querier, orgID string) (*Recent, error) {
	var c Recent
	err := q.QueryRow(ctx, usedTrunksSQL+`
		SELECT c.id, c.status IN ('ended', 'failed'), coalesce(c.disconnection_reason, '') FROM used, LATERAL (
			SELECT * FROM calls WHERE org_id = $1 AND trunk_id = used.id ORDER BY created_at DESC, id DESC LIMIT $2) c
		WHERE c.erased_at IS NULL ORDER BY c.created_at DESC, c.id DESC LIMIT 1`, orgID, newestOfTrunk).Scan(&c.ID, &c.Over, &c.Reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no phone call
	}
	return &c, db.Wrap(err, "newest phone call")
}

// answeredPart limits the answered calls, and the phone calls of each trunk, that HasAnsweredPhoneCall reads first.
const answeredPart = 1000

// HasAnsweredPhoneCall reports whether a phone call of an organization was answered, and has ended. No index has answered
// phone calls alone. So it reads some answered calls, and then the newest phone calls of each trunk. It reads all answered
// calls only if neither decides: at least answeredPart web calls, and as many unanswered phone calls in a row.
func HasAnsweredPhoneCall(ctx context.Context, q db.Querier, orgID string) (has bool, err error) {
	for _, sql := range []string{
		`SELECT coalesce(bool_or(call_type = 'phone'), false), count(*) < $2 FROM (
			SELECT call_type FROM calls WHERE org_id = $1 AND duration_class IS NOT NULL ORDER BY duration_class, created_at LIMIT $2) c`,
		usedTrunksSQL + `
		SELECT EXISTS (SELECT FROM used, LATERAL (
				SELECT duration_class FROM calls WHERE org_id = $1 AND trunk_id = used.id ORDER BY created_at DESC, id DESC LIMIT $2) c
			WHERE duration_class IS NOT NULL),
		NOT EXISTS (SELECT FROM used, LATERAL (
			SELECT FROM calls WHERE org_id = $1 AND trunk_id = used.id ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT 1) c)`,
		`SELECT EXISTS (SELECT FROM calls WHERE org_id = $1 AND duration_class IS NOT NULL AND call_type = 'phone'), $2 > 0`,
	} {
		var whole bool // all calls that could be answered phone calls were read
		if err = q.QueryRow(ctx, sql, orgID, answeredPart).Scan(&has, &whole); err != nil || has || whole {
			return has, db.Wrap(err, "answered phone calls")
		}
	}
	return has, nil
}
