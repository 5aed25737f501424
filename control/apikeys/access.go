// Package apikeys stores organizations and their API keys. It stores only the SHA-256 hash of a key's secret.
package apikeys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/groupcommit"
	"github.com/parley-voice/parley/media"
)

// Special values of Key.RateLimit.
const (
	RateDefault = 0  // the key has the rate limit that the operator configured
	RateOff     = -1 // the key has no limit
)

// prefix is the start of every secret. 64 hex characters follow it.
const prefix = "parley_"

// ErrUnknown is returned if the organization or key does not exist.
var ErrUnknown = errors.New("unknown")

// Key is an API key without its secret.
type Key struct {
	ID, OrgID, OrgName, Name string
	RateLimit                int // requests per minute, or RateDefault or RateOff
	Privileged               bool
	// Scopes are the parts of the API that the key may use; empty means all.
	Scopes                           []Scope
	CreatedAt                        time.Time
	RevokedAt, LastUsedAt, ExpiresAt *time.Time
	// Expired is set when the key is read. It follows the clock of the database.
	Expired bool
}

// EnsureOrganization returns the id of the organization with this name, and creates the organization if necessary.
func EnsureOrganization(ctx context.Context, q db.Querier, name string) (string, error) {
	return EnsureOrganizationAs(ctx, q, control.NewID("org_", time.Now()), name)
}

// EnsureOrganizationAs is like EnsureOrganization, but a new organization gets the id newID.
func EnsureOrganizationAs(ctx context.Context, q db.Querier, newID, name string) (string, error) {
	if strings.TrimSpace(name) == "" {
		return "", errors.New("an organization needs a name")
	}
	var id string
	err := q.QueryRow(ctx, `
		INSERT INTO organizations (id, name) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id`,
		newID, name).Scan(&id)
	return id, db.Wrap(err, fmt.Sprintf("organization %q", name))
}

// FindOrganization returns the id of the organization with this name, or ErrUnknown.
func FindOrganization(ctx context.Context, q db.Querier, name string) (string, error) {
	var id string
	err := q.QueryRow(ctx, "SELECT id FROM organizations WHERE name = $1", name).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", unknownOrganization(ctx, q, name)
	}
	return id, db.Wrap(err, fmt.Sprintf("organization %q", name))
}

// unknownOrganization returns ErrUnknown with the names of known organizations.
func unknownOrganization(ctx context.Context, q db.Querier, name string) error {
	known, err := OrganizationNames(ctx, q)
	if err != nil {
		return err
	}
	hint := "parley apply creates organizations"
	if names := slices.Sorted(maps.Values(known)); len(names) > 0 {
		hint = strings.Join(names[:min(len(names), maxNamed)], ", ")
		if len(names) > maxNamed {
			hint += ", …"
		}
		hint = strings.TrimPrefix(control.DidYouMean(name, names)+" organizations: "+hint, " ")
	}
	return fmt.Errorf("organization %q: %w; %s", name, ErrUnknown, hint)
}

// maxNamed is the maximum number of organizations that an error names.
const maxNamed = 10

// OrganizationNames returns the names of all organizations by ID.
func OrganizationNames(ctx context.Context, q db.Querier) (map[string]string, error) {
	rows, err := q.Query(ctx, "SELECT id, name FROM organizations")
	if err != nil {
		return nil, fmt.Errorf("organizations: %w", err)
	}
	all := map[string]string{}
	var id, name string
	_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error { all[id] = name; return nil })
	return all, db.Wrap(err, "organizations")
}

// CreateKey creates a key and returns its secret, which cannot be read again later.
func CreateKey(ctx context.Context, q db.Querier, k Key) (id string, secret media.Secret, err error) {
	if k.RateLimit < RateOff {
		return "", "", fmt.Errorf("rate limit %d: use a number of requests per minute, 0 for the limit of the platform, or off", k.RateLimit)
	}
	if err = CheckExpiry(k.ExpiresAt, time.Now()); err != nil {
		return "", "", err
	}
	if k.Privileged && !k.Allows(ScopeAdmin) {
		return "", "", fmt.Errorf("a privileged key without the scope %s could not use its privilege", ScopeAdmin)
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails since Go 1.24
	text := prefix + hex.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(text))
	id = control.NewID("key_", time.Now())
	_, err = q.Exec(ctx, `INSERT INTO api_keys (id, org_id, name, hash, rate_limit, privileged, scopes, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, nullif($7::text[], '{}'), $8)`,
		id, k.OrgID, k.Name, sum[:], k.RateLimit, k.Privileged, k.Scopes, k.ExpiresAt)
	if err != nil {
		return "", "", fmt.Errorf("create key: %w", err)
	}
	return id, media.Secret(text), nil
}

// ListKeys returns all keys, oldest first.
func ListKeys(ctx context.Context, q db.Querier) ([]Key, error) {
	return db.Collect(ctx, q, "list keys", func(row pgx.CollectableRow) (Key, error) { return scanKey(row) },
		"SELECT "+keyColumns+" ORDER BY k.created_at, k.id")
}

// SetRateLimit changes the limit of a key. The next request uses the new limit.
func SetRateLimit(ctx context.Context, q db.Querier, id string, limit int) error {
	if limit < RateOff {
		return fmt.Errorf("rate limit %d: use a number of requests per minute, 0 for the limit of the platform, or off", limit)
	}
	return updateKey(ctx, q, id, "UPDATE api_keys SET rate_limit = $2 WHERE id = $1", id, limit)
}

// Revoke makes a key invalid for all later requests. A second Revoke changes nothing.
func Revoke(ctx context.Context, q db.Querier, id string) error {
	return updateKey(ctx, q, id, "UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1", id)
}

func updateKey(ctx context.Context, q db.Querier, id, sql string, args ...any) error {
	tag, err := q.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("key %s: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("key %s: %w", id, ErrUnknown)
	}
	return nil
}

const keyColumns = `k.id, k.org_id, o.name, k.name, k.rate_limit, k.privileged, coalesce(k.scopes, '{}'), k.created_at, k.revoked_at,
	k.last_used_at, k.expires_at, coalesce(k.expires_at <= now(), false)
	FROM api_keys k JOIN organizations o ON o.id = k.org_id`

// scanKey reads a row that holds columns for more, followed by keyColumns.
func scanKey(row pgx.Row, more ...any) (Key, error) {
	var k Key
	err := row.Scan(append(more, &k.ID, &k.OrgID, &k.OrgName, &k.Name, &k.RateLimit, &k.Privileged, &k.Scopes, &k.CreatedAt, &k.RevokedAt,
		&k.LastUsedAt, &k.ExpiresAt, &k.Expired)...)
	return k, err
}

// Keys authenticates API requests.
type Keys struct {
	Pool *pgxpool.Pool

	once  sync.Once
	reads groupcommit.Group[*keyLookup]
}

// Concurrent requests look up their keys in one query.
const (
	lookupInterval = time.Millisecond // minimum time between two queries
	lookupTimeout  = 2 * time.Second
)

// keyLookup looks up the key of one request.
type keyLookup struct {
	hash [sha256.Size]byte
	key  Key
}

// Authenticate looks up the key in an Authorization header. Its errors have the codes api_key_required,
// api_key_unknown, api_key_revoked and api_key_expired.
func (k *Keys) Authenticate(ctx context.Context, header string) (Key, error) {
	secret, ok := bearer(header)
	if !ok {
		return Key{}, control.Refuse(control.CodeKeyRequired, "send the header Authorization: Bearer <API_KEY>")
	}
	k.once.Do(func() {
		k.reads = groupcommit.Group[*keyLookup]{Write: k.read, MinInterval: lookupInterval, Timeout: lookupTimeout}
	})
	r := &keyLookup{hash: sha256.Sum256([]byte(secret))}
	if err := k.reads.Do(ctx, r); err != nil {
		return Key{}, err
	}
	if r.key.RevokedAt != nil {
		return Key{}, control.Refuse(control.CodeKeyRevoked, "this API key was revoked")
	}
	if r.key.Expired {
		return Key{}, control.Refuse(control.CodeKeyExpired, "this API key expired at "+r.key.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return r.key, nil
}

// usedSQL records when keys were last used, at most once a minute per key. A crash may lose the record.
const usedSQL = `
WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
UPDATE api_keys SET last_used_at = now() FROM lazy WHERE id = ANY ($1) AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`

// read looks up the keys of several requests and records their use.
func (k *Keys) read(ctx context.Context, all []*keyLookup) ([]error, error) {
	asked := map[[sha256.Size]byte][]int{}
	var hashes [][]byte
	each := make([]error, len(all))
	for n, r := range all {
		if asked[r.hash] == nil {
			hashes = append(hashes, r.hash[:])
		}
		asked[r.hash] = append(asked[r.hash], n)
		each[n] = control.Refuse(control.CodeKeyUnknown, "this API key is unknown")
	}
	rows, err := k.Pool.Query(ctx, "SELECT k.hash, "+keyColumns+" WHERE k.hash = ANY ($1)", hashes)
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	defer rows.Close()
	var used []string
	for rows.Next() {
		var hash []byte
		key, fault := scanKey(rows, &hash)
		if fault != nil {
			return nil, fmt.Errorf("authenticate: %w", fault)
		}
		if key.RevokedAt == nil && !key.Expired && (key.LastUsedAt == nil || time.Since(*key.LastUsedAt) > time.Minute) {
			used = append(used, key.ID)
		}
		for _, n := range asked[[sha256.Size]byte(hash)] {
			all[n].key, each[n] = key, nil
		}
	}
	if err = rows.Err(); err == nil && len(used) > 0 {
		_, err = k.Pool.Exec(ctx, usedSQL, used)
	}
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return each, nil
}

// bearer returns the token of a Bearer header (RFC 6750 section 2.1).
func bearer(header string) (string, bool) {
	fields := strings.Fields(header)
	if len(fields) != 2 || !strings.EqualFold(fields[0], "Bearer") {
		return "", false
	}
	return fields[1], true
}
