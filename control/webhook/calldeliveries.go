package webhook

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// CallDelivery is the delivery of one event of a call to one endpoint.
type CallDelivery struct {
	ID, EndpointID, URL, Type string
	State                     string // "pending", "delivered" or "dead"
	Tries, LastStatus         int    // LastStatus 0 means that there was no response
	LastError                 string
	NextAt, CreatedAt         time.Time
	SettledAt                 *time.Time
	Disabled                  bool // the endpoint is disabled
}

// CallDeliveries returns the deliveries for a call of an organization, oldest first.
func CallDeliveries(ctx context.Context, q db.Querier, orgID, callID string) ([]CallDelivery, error) {
	return db.Collect(ctx, q, "failed to read the deliveries of a call", pgx.RowToStructByPos[CallDelivery], `
		SELECT d.id, e.id, e.url, d.type, d.state, d.tries, coalesce(d.last_status, 0), d.last_error, d.next_at, d.created_at, d.settled_at,
			e.disabled_at IS NOT NULL
		FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
		WHERE d.call_id = $1 AND e.org_id = $2 ORDER BY d.created_at, d.id`, callID, orgID)
}
