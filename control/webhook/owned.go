package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// An Owned endpoint is one as its operator sees it, without its secret.
type Owned struct {
	ID, OrgID, URL            string
	Events                    []string
	DisabledAt, LastSuccessAt *time.Time
	DisabledReason            string
	CreatedAt                 time.Time
	Thin                      bool
	Agents                    []string
	Rotating                  bool // the secret before signs too
}

const ownedColumns = "id, org_id, url, events, disabled_at, last_success_at, disabled_reason, created_at, thin, agents, previous_secret <> ''"

// NewSecret returns a secret to sign notices with.
func NewSecret() media.Secret {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	return media.Secret(secretPrefix + base64.StdEncoding.EncodeToString(raw[:]))
}

// ListOwned returns the endpoints of an organization, of all where it is empty,
// after an id, by id, limit of them at most.
func ListOwned(ctx context.Context, q db.Querier, orgID, after string, limit int) ([]Owned, error) {
	rows, err := q.Query(ctx, "SELECT "+ownedColumns+" FROM webhook_endpoints WHERE ($1 = '' OR org_id = $1) AND id > $2 ORDER BY id LIMIT $3", orgID, after, limit)
	if err != nil {
		return nil, fmt.Errorf("webhook endpoints: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Owned])
	if err != nil {
		return nil, fmt.Errorf("webhook endpoints: %w", err)
	}
	return all, nil
}

// Save creates an organization's endpoint, or changes the one of its address,
// which works again if it had been disabled. A secret that is replaced signs
// too, until the next change.
func Save(ctx context.Context, q db.Querier, e Endpoint) (Owned, error) {
	return one(q.Query(ctx, `
		INSERT INTO webhook_endpoints AS w (id, org_id, url, secret, events) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id, url) DO UPDATE SET secret = excluded.secret, events = excluded.events,
			previous_secret = CASE WHEN w.secret = excluded.secret THEN w.previous_secret ELSE w.secret END,
			disabled_at = NULL, disabled_reason = '',
			failed_in_a_row = CASE WHEN w.disabled_at IS NULL THEN w.failed_in_a_row ELSE 0 END
		RETURNING `+ownedColumns, control.NewID("whe_", time.Now()), e.OrgID, e.URL, e.Secret, e.Events))
}

// Read returns an organization's endpoint, or ErrUnknown.
func Read(ctx context.Context, q db.Querier, orgID, id string) (Owned, error) {
	return one(q.Query(ctx, "SELECT "+ownedColumns+" FROM webhook_endpoints WHERE org_id = $1 AND id = $2", orgID, id))
}

// Change changes what an organization's endpoint is told: events, and whether in
// short, and of which agents.
func Change(ctx context.Context, q db.Querier, e Endpoint) (Owned, error) {
	return one(q.Query(ctx, "UPDATE webhook_endpoints SET events = $3, thin = $4, agents = coalesce($5::text[], '{}') WHERE org_id = $1 AND id = $2 RETURNING "+ownedColumns,
		e.OrgID, e.ID, e.Events, e.Thin, e.Agents))
}

// Rotate has an organization's endpoint signed for by another secret. The one
// before signs too, until Rotate is called with none.
func Rotate(ctx context.Context, q db.Querier, orgID, id string, secret media.Secret) (Owned, error) {
	if secret == "" {
		return one(q.Query(ctx, "UPDATE webhook_endpoints SET previous_secret = '' WHERE org_id = $1 AND id = $2 RETURNING "+ownedColumns, orgID, id))
	}
	return one(q.Query(ctx, "UPDATE webhook_endpoints SET previous_secret = secret, secret = $3 WHERE org_id = $1 AND id = $2 RETURNING "+ownedColumns, orgID, id, secret))
}

// Remove deletes an endpoint, and returns what it was, or ErrUnknown.
func Remove(ctx context.Context, q db.Querier, id string) (Owned, error) {
	return one(q.Query(ctx, "DELETE FROM webhook_endpoints WHERE id = $1 RETURNING "+ownedColumns, id))
}

func one(rows pgx.Rows, err error) (Owned, error) {
	if err != nil {
		return Owned{}, fmt.Errorf("webhook endpoint: %w", err)
	}
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Owned])
	if errors.Is(err, pgx.ErrNoRows) {
		return o, ErrUnknown
	}
	if err != nil {
		return o, fmt.Errorf("webhook endpoint: %w", err)
	}
	return o, nil
}

// Create adds an endpoint to an organization's. Taken tells of its error whether
// there is one of the address already.
func Create(ctx context.Context, q db.Querier, e Endpoint) (Owned, error) {
	return one(q.Query(ctx, `
		INSERT INTO webhook_endpoints (id, org_id, url, secret, events, thin, agents) VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::text[], '{}'))
		RETURNING `+ownedColumns, control.NewID("whe_", time.Now()), e.OrgID, e.URL, e.Secret, e.Events, e.Thin, e.Agents))
}

// Taken reports whether an address was an organization's already.
func Taken(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "23505" // unique_violation
}
