package trunks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// syncRealms stores the realms that u.Proxies has learned, and passes all stored realms to u.Proxies. It deletes the
// realms of proxies that no trunk uses.
func (u *Reconciler) syncRealms(ctx context.Context, lines []media.Trunk) error {
	if fresh := u.Proxies.Realms(); len(fresh) > 0 {
		proxies := slices.Sorted(maps.Keys(fresh))
		realms := make([]string, 0, len(proxies))
		for _, p := range proxies {
			realms = append(realms, fresh[p])
		}
		_, err := u.DB.Exec(ctx, `
			INSERT INTO trunk_realms (proxy, realm) SELECT * FROM unnest($1::text[], $2::text[])
			ON CONFLICT (proxy) DO UPDATE SET realm = excluded.realm, pinned_at = now() WHERE trunk_realms.realm <> excluded.realm`, proxies, realms)
		if err != nil {
			return fmt.Errorf("store realms: %w", err)
		}
	}
	named := map[string]bool{}
	for _, l := range lines {
		named[l.Proxy] = true
		for _, b := range l.Backups {
			named[b] = true
		}
	}
	rows, err := u.DB.Query(ctx, "SELECT proxy, realm FROM trunk_realms")
	if err != nil {
		return fmt.Errorf("realms: %w", err)
	}
	stored, old := map[string]string{}, 0
	var proxy, realm string
	_, err = pgx.ForEachRow(rows, []any{&proxy, &realm}, func() error {
		if named[proxy] {
			stored[proxy] = realm
		} else {
			old++
		}
		return nil
	})
	if err == nil && old > 0 {
		_, err = u.DB.Exec(ctx, "DELETE FROM trunk_realms WHERE NOT proxy = ANY ($1)", slices.Sorted(maps.Keys(named)))
	}
	if err != nil {
		return fmt.Errorf("realms: %w", err)
	}
	u.Proxies.RestoreRealms(stored)
	return nil
}

// Realm returns the learned authentication realm of a proxy, or "" if none was learned. Calls use it if the trunk sets
// no realm.
func Realm(ctx context.Context, q db.Querier, proxy string) (string, error) {
	var realm string
	err := q.QueryRow(ctx, "SELECT coalesce((SELECT realm FROM trunk_realms WHERE proxy = $1), '')", proxy).Scan(&realm)
	if err != nil {
		return "", fmt.Errorf("realm: %w", err)
	}
	return realm, nil
}
