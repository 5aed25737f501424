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

// EndpointView is an endpoint without its secrets.
type EndpointView struct {
	ID, OrgID, URL            string
	Events                    []string
	DisabledAt, LastSuccessAt *time.Time
	DisabledReason            string
	CreatedAt                 time.Time
	Thin                      bool
	Agents                    []string
	Rotating                  bool // deliveries are also signed with the previous secret
}

const ownedColumns = "id, org_id, url, events, disabled_at, last_success_at, disabled_reason, created_at, thin, agents, " +
	"previous_secret <> ''"

// NewSecret returns a random signing secret.
func NewSecret() media.Secret {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	return media.Secret(secretPrefix + base64.StdEncoding.EncodeToString(raw[:]))
}

// ListEndpoints returns at most limit endpoints with ids greater than after, ordered by id. An empty orgID selects the
// endpoints of all organizations.
func ListEndpoints(ctx context.Context, q db.Querier, orgID, after string, limit int) ([]EndpointView, error) {
	return db.Collect(ctx, q, "webhook endpoints", pgx.RowToStructByPos[EndpointView],
		"SELECT "+ownedColumns+" FROM webhook_endpoints WHERE ($1 = '' OR org_id = $1) AND id > $2 ORDER BY id LIMIT $3", orgID, after, limit)
}

// Save creates an endpoint of the organization. If an endpoint with the same URL exists, Save changes and enables it.
// The previous secret also signs until the next change of the secret.
func Save(ctx context.Context, q db.Querier, e Endpoint) (EndpointView, error) {
	return one(q.Query(ctx, `
		INSERT INTO webhook_endpoints AS w (id, org_id, url, secret, events) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (org_id, url) DO UPDATE SET secret = excluded.secret, events = excluded.events,
			previous_secret = CASE WHEN w.secret = excluded.secret THEN w.previous_secret ELSE w.secret END,
			disabled_at = NULL, disabled_reason = '',
			failed_in_a_row = CASE WHEN w.disabled_at IS NULL THEN w.failed_in_a_row ELSE 0 END
		RETURNING `+ownedColumns, control.NewID("whe_", time.Now()), e.OrgID, e.URL, e.Secret, e.Events))
}

// Read returns the organization's endpoint, or ErrUnknown.
func Read(ctx context.Context, q db.Querier, orgID, id string) (EndpointView, error) {
	return one(q.Query(ctx, "SELECT "+ownedColumns+" FROM webhook_endpoints WHERE org_id = $1 AND id = $2", orgID, id))
}

// Change sets Events, Thin and Agents of the organization's endpoint.
func Change(ctx context.Context, q db.Querier, e Endpoint) (EndpointView, error) {
	return one(
		q.Query(
			ctx,
			"UPDATE webhook_endpoints SET events = $3, thin = $4, agents = coalesce($5::text[], '{}') "+
				"WHERE org_id = $1 AND id = $2 RETURNING "+ownedColumns,
			e.OrgID,
			e.ID,
			e.Events,
			e.Thin,
			e.Agents,
		),
	)
}

// Rotate changes the secret of the organization's endpoint. The previous secret also signs until the next call of
// Rotate. An empty secret keeps the current secret and removes the previous one.
func Rotate(ctx context.Context, q db.Querier, orgID, id string, secret media.Secret) (EndpointView, error) {
	if secret == "" {
		return one(
			q.Query(ctx, "UPDATE webhook_endpoints SET previous_secret = '' WHERE org_id = $1 AND id = $2 RETURNING "+ownedColumns, orgID, id),
		)
	}
	return one(
		q.Query(
			ctx,
			"UPDATE webhook_endpoints SET previous_secret = secret, secret = $3 WHERE org_id = $1 AND id = $2 RETURNING "+ownedColumns,
			orgID, id, secret,
		),
	)
}

// Remove deletes an endpoint. It returns the deleted endpoint, or ErrUnknown.
func Remove(ctx context.Context, q db.Querier, id string) (EndpointView, error) {
	return one(q.Query(ctx, "DELETE FROM webhook_endpoints WHERE id = $1 RETURNING "+ownedColumns, id))
}

func one(rows pgx.Rows, err error) (EndpointView, error) {
	if err != nil {
		return EndpointView{}, fmt.Errorf("webhook endpoint: %w", err)
	}
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[EndpointView])
	return o, db.RowError(err, "webhook endpoint", ErrUnknown)
}

// Create adds an endpoint to an organization. IsURLTaken reports whether the error means that the URL is in use.
func Create(ctx context.Context, q db.Querier, e Endpoint) (EndpointView, error) {
	return one(q.Query(ctx, `
		INSERT INTO webhook_endpoints (id, org_id, url, secret, events, thin, agents) VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::text[], '{}'))
		RETURNING `+ownedColumns, control.NewID("whe_", time.Now()), e.OrgID, e.URL, e.Secret, e.Events, e.Thin, e.Agents))
}

// IsURLTaken reports whether err means that the organization has an endpoint with the same URL.
func IsURLTaken(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "23505" // SQLSTATE unique_violation
}
