package apikeys

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Organization is a tenant.
type Organization struct {
	ID, Name, Timezone string
	CreatedAt          time.Time
	// Market is the code of the organization's market; it is empty if the organization has none. MarketVersion is the
	// version of the market's rules; it is empty if the built-in rules apply.
	Market, MarketVersion string
}

const organizationColumns = `
SELECT id, name, timezone, created_at, coalesce(settings ->> 'market', ''),
       CASE WHEN settings -> 'market_rules' ->> 'code' = settings ->> 'market' THEN coalesce(settings -> 'market_rules' ->> 'version', '') ELSE '' END
FROM organizations `

// Organizations returns at most limit organizations with ids greater than after, ordered by id.
func Organizations(ctx context.Context, q db.Querier, after string, limit int) ([]Organization, error) {
	return db.Collect(ctx, q, "organizations", pgx.RowToStructByPos[Organization],
		organizationColumns+"WHERE id > $1 ORDER BY id LIMIT $2", after, limit)
}

// ReadOrganization returns the organization with this id, or ErrUnknown.
func ReadOrganization(ctx context.Context, q db.Querier, id string) (Organization, error) {
	return readOne(ctx, q, "organization "+id, pgx.RowToStructByPos[Organization], organizationColumns+"WHERE id = $1", id)
}

// readOne returns the only row of a query, or ErrUnknown if there is no row.
func readOne[T any](ctx context.Context, q db.Querier, what string, scan pgx.RowToFunc[T], sql string, args ...any) (v T, err error) {
	all, err := db.Collect(ctx, q, what, scan, sql, args...)
	if err == nil && len(all) == 0 {
		err = db.Wrap(ErrUnknown, what)
	}
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// CreateOrganization creates an organization and returns true. If the name is in use, it returns the existing
// organization and false.
func CreateOrganization(ctx context.Context, q db.Querier, name, timezone string) (o Organization, created bool, err error) {
	id := control.NewID("org_", time.Now())
	if _, err = db.Exec(ctx, q, "organization",
		"INSERT INTO organizations (id, name, timezone) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING", id, name, timezone); err != nil {
		return o, false, err
	}
	o, err = readOne(ctx, q, "organization", pgx.RowToStructByPos[Organization], organizationColumns+"WHERE name = $1", name)
	return o, o.ID == id, err
}

// KeysOf returns at most limit keys with ids greater than after, ordered by id. An empty orgID selects the keys of all
// organizations.
func KeysOf(ctx context.Context, q db.Querier, orgID, after string, limit int) ([]Key, error) {
	return db.Collect(ctx, q, "keys", func(row pgx.CollectableRow) (Key, error) { return scanKey(row) },
		"SELECT "+keyColumns+" WHERE ($1 = '' OR k.org_id = $1) AND k.id > $2 ORDER BY k.id LIMIT $3", orgID, after, limit)
}

// NewestKeys returns at most limit keys of an organization with ids less than before, newest first. An empty before
// starts with the newest key.
func NewestKeys(ctx context.Context, q db.Querier, orgID, before string, limit int) ([]Key, error) {
	return db.Collect(ctx, q, "keys", func(row pgx.CollectableRow) (Key, error) { return scanKey(row) },
		"SELECT "+keyColumns+" WHERE k.org_id = $1 AND ($2 = '' OR k.id < $2) ORDER BY k.id DESC LIMIT $3", orgID, before, limit)
}

// ReadKey returns the key with this id, or ErrUnknown.
func ReadKey(ctx context.Context, q db.Querier, id string) (Key, error) {
	return readOne(ctx, q, "key "+id, func(row pgx.CollectableRow) (Key, error) { return scanKey(row) },
		"SELECT "+keyColumns+" WHERE k.id = $1", id)
}
