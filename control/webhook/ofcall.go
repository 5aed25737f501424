package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A CallNotice is one of a call to an endpoint, and how it stands with it.
type CallNotice struct {
	ID, EndpointID, URL, Type string
	State                     string // pending, delivered, dead
	Tries, LastStatus         int    // 0: there was no answer yet
	LastError                 string
	NextAt, CreatedAt         time.Time
	SettledAt                 *time.Time
	Disabled                  bool // its endpoint is
}

// OfCall returns the notices of an organization's call, oldest first.
func OfCall(ctx context.Context, q db.Querier, orgID, callID string) ([]CallNotice, error) {
	rows, err := q.Query(ctx, `
		SELECT d.id, e.id, e.url, d.type, d.state, d.tries, coalesce(d.last_status, 0), d.last_error, d.next_at, d.created_at, d.settled_at,
			e.disabled_at IS NOT NULL
		FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
		WHERE d.call_id = $1 AND e.org_id = $2 ORDER BY d.created_at, d.id`, callID, orgID)
	if err != nil {
		return nil, fmt.Errorf("notices of a call: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[CallNotice])
	if err != nil {
		return nil, fmt.Errorf("notices of a call: %w", err)
	}
	return all, nil
}
