package store

import (
	"context"

	"github.com/parley-voice/parley/control/db"
)

// Reassigned is a condition on a contact c: its number was reassigned since its
// consent.
const Reassigned = `(c.consent_at IS NOT NULL AND EXISTS (SELECT FROM reassigned_numbers r
	WHERE r.org_id = c.org_id AND r.number = c.number AND r.result = 'yes' AND r.consent_on >= (c.consent_at AT TIME ZONE 'UTC')::date))`

// SuppressReassigned suppresses the waiting contacts whose numbers were reassigned
// since their consent (47 CFR 64.1200(m)), of one import or, if importID is empty, of
// the organization. It returns their number. A contact in a call is checked before its
// next call.
func SuppressReassigned(ctx context.Context, q db.Querier, orgID, importID string) (int, error) {
	return db.Exec(ctx, q, "reassigned numbers", `
		UPDATE contacts c SET state = 'suppressed', reason = 'reassigned_number', updated_at = now()
		WHERE c.org_id = $1 AND ($2 = '' OR c.import_id = $2) AND c.state IN ('pending', 'awaiting') AND `+Reassigned, orgID, importID)
}
