package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Endpoint is a URL to which an organization's events are delivered.
type Endpoint struct {
	ID, OrgID, URL string
	Secret         media.Secret
	// Previous is the previous secret, or empty. While it is set, deliveries carry a signature of each secret, so that
	// receivers can change to the new secret.
	Previous media.Secret
	Events   []string // some of Types
	// Thin leaves the transcript out of deliveries.
	Thin bool
	// Agents names the agents whose calls are reported; empty means all agents.
	Agents []string
}

// Check returns an error if the endpoint is invalid. insecure permits plain http.
func (e Endpoint) Check(insecure bool) error {
	if err := CheckURL(e.URL, insecure); err != nil {
		return err
	}
	if _, err := e.keys(); err != nil {
		return err
	}
	for _, t := range e.Events {
		if !slices.Contains(Types(), t) {
			return fmt.Errorf("event %q: use %s", t, strings.Join(Types(), ", "))
		}
	}
	return nil
}

func (e Endpoint) keys() (keyring, error) {
	key, err := signingKey(e.Secret)
	if err != nil || e.Previous == "" {
		return keyring{key}, err
	}
	before, err := signingKey(e.Previous)
	if err != nil {
		return nil, fmt.Errorf("the previous secret: %w", err)
	}
	return keyring{key, before}, nil
}

// Endpoints returns the endpoints of an organization, with their secrets.
func Endpoints(ctx context.Context, q db.Querier, orgID string) ([]Endpoint, error) {
	return db.Collect(ctx, q, "webhook endpoints", pgx.RowToStructByPos[Endpoint], `
		SELECT id, org_id, url, secret, previous_secret, events, thin, agents FROM webhook_endpoints WHERE org_id = $1 ORDER BY url`, orgID)
}

// Replace sets all endpoints of an organization. An endpoint with the same URL as before keeps its pending deliveries
// and is enabled again.
func Replace(ctx context.Context, q db.Querier, orgID string, all []Endpoint) error {
	urls := []string{}
	for _, e := range all {
		_, err := q.Exec(ctx, `
			INSERT INTO webhook_endpoints (id, org_id, url, secret, previous_secret, events, thin, agents) VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8::text[], '{}'))
			ON CONFLICT (org_id, url) DO UPDATE SET secret = excluded.secret, previous_secret = excluded.previous_secret, events = excluded.events,
				thin = excluded.thin, agents = excluded.agents,
				disabled_at = NULL, disabled_reason = '',
				failed_in_a_row = CASE WHEN webhook_endpoints.disabled_at IS NULL THEN webhook_endpoints.failed_in_a_row ELSE 0 END`,
			control.NewID("whe_", time.Now()), orgID, e.URL, e.Secret, e.Previous, e.Events, e.Thin, e.Agents)
		if err != nil {
			return fmt.Errorf("webhook endpoint: %w", err)
		}
		urls = append(urls, e.URL)
	}
	_, err := db.Exec(ctx, q, "webhook endpoints", "DELETE FROM webhook_endpoints WHERE org_id = $1 AND NOT url = ANY ($2)", orgID, urls)
	return err
}
