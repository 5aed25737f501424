package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// An Endpoint is where an organization wants to be told.
type Endpoint struct {
	ID, OrgID, URL string
	Secret         media.Secret
	Events         []string // of Types
}

// Check returns what is wrong with an endpoint.
func (e Endpoint) Check(insecure bool) error {
	if err := CheckURL(e.URL, insecure); err != nil {
		return err
	}
	if _, err := signingKey(e.Secret); err != nil {
		return err
	}
	for _, t := range e.Events {
		if !slices.Contains(Types(), t) {
			return fmt.Errorf("event %q: use %s", t, strings.Join(Types(), ", "))
		}
	}
	return nil
}

// Replace makes endpoints those of an organization. One whose address stays
// keeps what is on its way to it, and works again if it had been disabled.
func Replace(ctx context.Context, q db.Querier, orgID string, all []Endpoint) error {
	urls := []string{}
	for _, e := range all {
		_, err := q.Exec(ctx, `
			INSERT INTO webhook_endpoints (id, org_id, url, secret, events) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org_id, url) DO UPDATE SET secret = excluded.secret, events = excluded.events,
				disabled_at = NULL, disabled_reason = '',
				failed_in_a_row = CASE WHEN webhook_endpoints.disabled_at IS NULL THEN webhook_endpoints.failed_in_a_row ELSE 0 END`,
			control.NewID("whe_", time.Now()), orgID, e.URL, string(e.Secret), e.Events)
		if err != nil {
			return fmt.Errorf("webhook endpoint: %w", err)
		}
		urls = append(urls, e.URL)
	}
	if _, err := q.Exec(ctx, "DELETE FROM webhook_endpoints WHERE org_id = $1 AND NOT url = ANY ($2)", orgID, urls); err != nil {
		return fmt.Errorf("webhook endpoints: %w", err)
	}
	return nil
}
