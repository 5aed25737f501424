package dnc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
)

// ErrOptedOut is returned for a number that cannot be removed from the list because its
// owner opted out.
var ErrOptedOut = errors.New("the person opted out: the number stays on the list")

// ErrNumber is returned for an invalid number, or one that is not on the list.
var ErrNumber = errors.New("a telephone number must have 7 to 15 digits")

// An OwnNumber is a number on an organization's list.
type OwnNumber struct {
	Number   string    // digits of the number
	OptedOut bool      // the person opted out
	At       time.Time // time of the opt-out
}

// OwnNumbers returns one page of an organization's list: up to limit numbers, sorted, that follow the number after.
func OwnNumbers(ctx context.Context, q db.Querier, orgID, after string, limit int) ([]OwnNumber, error) {
	return db.Collect(ctx, q, "suppression list", pgx.RowToStructByPos[OwnNumber], `
		SELECT s.number, a.at IS NOT NULL, coalesce(a.at, 'epoch')
		FROM suppressions s LEFT JOIN LATERAL (SELECT max(at) AS at FROM opt_outs o WHERE o.org_id = s.org_id AND o.number = s.number) a ON true
		WHERE s.org_id = $1 AND s.number > $2 ORDER BY s.number LIMIT $3`, orgID, after, limit)
}

// CountOwn counts the numbers on an organization's list, up to most.
func CountOwn(ctx context.Context, q db.Querier, orgID string, most int) (n int, err error) {
	err = q.QueryRow(ctx, "SELECT count(*) FROM (SELECT FROM suppressions WHERE org_id = $1 LIMIT $2) x", orgID, most).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("suppression list: %w", err)
	}
	return n, nil
}

// AddNumber adds a number to an organization's list. It returns the digits of the number, and whether the number was
// on the list already.
func AddNumber(ctx context.Context, q db.Querier, orgID, number string) (digits string, exists bool, err error) {
	digits = phonenumber.SuppressionDigits(number)
	if len(digits) < 7 || len(digits) > 15 {
		return "", false, ErrNumber
	}
	const insert = "INSERT INTO suppressions (org_id, number) VALUES ($1, $2) ON CONFLICT DO NOTHING"
	n, err := db.Exec(ctx, q, "suppression list", insert, orgID, digits)
	return digits, n == 0, err
}

// RemoveNumber removes a number by its digits. It returns ErrOptedOut if the person
// opted out, and ErrNumber if the number is not on the list.
func RemoveNumber(ctx context.Context, q db.Querier, orgID, digits string) error {
	var optedOut bool
	err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM opt_outs WHERE org_id = $1 AND number = $2)", orgID, digits).Scan(&optedOut)
	if err != nil {
		return fmt.Errorf("suppression list: %w", err)
	}
	if optedOut {
		return ErrOptedOut
	}
	n, err := db.Exec(ctx, q, "suppression list", "DELETE FROM suppressions WHERE org_id = $1 AND number = $2", orgID, digits)
	if err == nil && n == 0 {
		return ErrNumber
	}
	return err
}

// OrganizationHistory returns loads of registries and of an organization's list, the newest first: the last ones, or
// those before the load with the id before, if it is not 0.
func OrganizationHistory(ctx context.Context, q db.Querier, orgID string, before int64, limit int) ([]LoadRecord, error) {
	return db.Collect(ctx, q, "loads", pgx.RowToStructByPos[LoadRecord], `
		SELECT id, name, org_id, files, replaced, added, deleted, numbers, downloaded_at, loaded_by, at
		FROM list_loads WHERE org_id IN ('', $1) AND ($2 = 0 OR id < $2) ORDER BY id DESC LIMIT $3`, orgID, before, limit)
}

// IsOwnList reports whether a load was of an organization's list.
func (p LoadRecord) IsOwnList() bool { return p.Name == screening.OwnList }
