package lists

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// ErrAsked is returned where a number cannot be taken off an organization's list:
// whose it is asked for it.
var ErrAsked = errors.New("whose number it is asked not to be called: it stays on the list")

// ErrNumber is returned where a number is none.
var ErrNumber = errors.New("a telephone number has 7 to 15 digits")

// An Own number is one of an organization's list.
type Own struct {
	Number string    // digits
	Asked  bool      // whose it is asked for it
	At     time.Time // of that
}

// OwnNumbers returns an organization's own list by number: those after a number,
// limit of them at most.
func OwnNumbers(ctx context.Context, q db.Querier, orgID, after string, limit int) ([]Own, error) {
	rows, err := q.Query(ctx, `
		SELECT s.number, a.at IS NOT NULL, coalesce(a.at, 'epoch')
		FROM suppressions s LEFT JOIN LATERAL (SELECT max(at) AS at FROM opt_outs o WHERE o.org_id = s.org_id AND o.number = s.number) a ON true
		WHERE s.org_id = $1 AND s.number > $2 ORDER BY s.number LIMIT $3`, orgID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("the organization's list: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Own])
	if err != nil {
		return nil, fmt.Errorf("the organization's list: %w", err)
	}
	return all, nil
}

// CountOwn counts the numbers of an organization's own list, up to most.
func CountOwn(ctx context.Context, q db.Querier, orgID string, most int) (n int, err error) {
	err = q.QueryRow(ctx, "SELECT count(*) FROM (SELECT FROM suppressions WHERE org_id = $1 LIMIT $2) x", orgID, most).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("the organization's list: %w", err)
	}
	return n, nil
}

// Put puts a number on an organization's own list, and reports its digits and
// whether it was there already.
func Put(ctx context.Context, q db.Querier, orgID, number string) (digits string, there bool, err error) {
	digits = control.Digits(number)
	if len(digits) < 7 || len(digits) > 15 {
		return "", false, ErrNumber
	}
	tag, err := q.Exec(ctx, "INSERT INTO suppressions (org_id, number) VALUES ($1, $2) ON CONFLICT DO NOTHING", orgID, digits)
	if err != nil {
		return "", false, fmt.Errorf("the organization's list: %w", err)
	}
	return digits, tag.RowsAffected() == 0, nil
}

// Take takes a number, by its digits, off an organization's own list. It fails with
// ErrAsked where whose it is asked to be there, and with ErrNumber where it is not
// on the list.
func Take(ctx context.Context, q db.Querier, orgID, digits string) error {
	var asked bool
	if err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM opt_outs WHERE org_id = $1 AND number = $2)", orgID, digits).Scan(&asked); err != nil {
		return fmt.Errorf("the organization's list: %w", err)
	}
	if asked {
		return ErrAsked
	}
	tag, err := q.Exec(ctx, "DELETE FROM suppressions WHERE org_id = $1 AND number = $2", orgID, digits)
	if err != nil {
		return fmt.Errorf("the organization's list: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNumber
	}
	return nil
}

// HistoryOf lists the last loads of registries, and of an organization's own list,
// the newest first.
func HistoryOf(ctx context.Context, q db.Querier, orgID string, limit int) ([]Past, error) {
	rows, err := q.Query(ctx, `
		SELECT name, org_id, files, replaced, added, deleted, numbers, downloaded_at, loaded_by, at
		FROM list_loads WHERE org_id IN ('', $1) ORDER BY id DESC LIMIT $2`, orgID, limit)
	if err != nil {
		return nil, fmt.Errorf("loads: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Past])
	if err != nil {
		return nil, fmt.Errorf("loads: %w", err)
	}
	return all, nil
}

// Of reports whether a load was of an organization's own list.
func (p Past) Of() bool { return p.Name == screen.OwnList }
