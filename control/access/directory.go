package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// An Organization is what is known of one.
type Organization struct {
	ID, Name, Timezone string
	CreatedAt          time.Time
	// Market is the code of the market whose rules it goes by, and MarketVersion
	// the version of them; empty where there is none, or it is the program's own.
	Market, MarketVersion string
}

const organizationColumns = `
SELECT id, name, timezone, created_at, coalesce(settings ->> 'market', ''),
       CASE WHEN settings -> 'market_rules' ->> 'code' = settings ->> 'market' THEN coalesce(settings -> 'market_rules' ->> 'version', '') ELSE '' END
FROM organizations `

// Organizations returns those after an id, by id, limit of them at most.
func Organizations(ctx context.Context, q db.Querier, after string, limit int) ([]Organization, error) {
	rows, err := q.Query(ctx, organizationColumns+"WHERE id > $1 ORDER BY id LIMIT $2", after, limit)
	if err != nil {
		return nil, fmt.Errorf("organizations: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Organization])
	if err != nil {
		return nil, fmt.Errorf("organizations: %w", err)
	}
	return all, nil
}

// ReadOrganization returns the organization of an id, or ErrUnknown.
func ReadOrganization(ctx context.Context, q db.Querier, id string) (Organization, error) {
	rows, err := q.Query(ctx, organizationColumns+"WHERE id = $1", id)
	if err != nil {
		return Organization{}, fmt.Errorf("organization %s: %w", id, err)
	}
	return only(rows, "organization "+id, pgx.RowToStructByPos[Organization])
}

// only is the one row that there is, or ErrUnknown.
func only[T any](rows pgx.Rows, what string, scan pgx.RowToFunc[T]) (T, error) {
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknown
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// CreateOrganization creates one, where there is none of the name yet; else it
// reports that it made none, and returns what is there.
func CreateOrganization(ctx context.Context, q db.Querier, name, timezone string) (o Organization, made bool, err error) {
	id := control.NewID("org_", time.Now())
	_, err = q.Exec(ctx, "INSERT INTO organizations (id, name, timezone) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING", id, name, timezone)
	if err != nil {
		return o, false, fmt.Errorf("organization: %w", err)
	}
	rows, err := q.Query(ctx, organizationColumns+"WHERE name = $1", name)
	if err != nil {
		return o, false, fmt.Errorf("organization: %w", err)
	}
	o, err = only(rows, "organization", pgx.RowToStructByPos[Organization])
	return o, o.ID == id, err
}

// KeysOf returns the keys of an organization, of all where it is empty, after an
// id, by id, limit of them at most.
func KeysOf(ctx context.Context, q db.Querier, orgID, after string, limit int) ([]Key, error) {
	rows, err := q.Query(ctx, "SELECT "+keyColumns+" WHERE ($1 = '' OR k.org_id = $1) AND k.id > $2 ORDER BY k.id LIMIT $3", orgID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Key, error) { return scanKey(row) })
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return all, nil
}

// NewestKeys returns the keys of an organization, the newest first: those before an id,
// limit of them at most.
func NewestKeys(ctx context.Context, q db.Querier, orgID, before string, limit int) ([]Key, error) {
	rows, err := q.Query(ctx, "SELECT "+keyColumns+" WHERE k.org_id = $1 AND ($2 = '' OR k.id < $2) ORDER BY k.id DESC LIMIT $3", orgID, before, limit)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Key, error) { return scanKey(row) })
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	return all, nil
}

// ReadKey returns the key of an id, or ErrUnknown.
func ReadKey(ctx context.Context, q db.Querier, id string) (Key, error) {
	rows, err := q.Query(ctx, "SELECT "+keyColumns+" WHERE k.id = $1", id)
	if err != nil {
		return Key{}, fmt.Errorf("key %s: %w", id, err)
	}
	return only(rows, "key "+id, func(row pgx.CollectableRow) (Key, error) { return scanKey(row) })
}
