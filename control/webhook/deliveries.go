package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// Delivery is the record of a delivery.
type Delivery struct {
	ID, EndpointID, CallID, Type, State string
	Tries                               int
	NextAt, CreatedAt                   time.Time // NextAt is meaningful while the delivery is pending
	SettledAt                           *time.Time
	Status                              int    // HTTP status of the last response; 0 if there was none
	Fault                               string // why there was no response
}

const sentColumns = "id, endpoint_id, call_id, type, state, tries, next_at, created_at, settled_at, coalesce(last_status, 0), last_error"

// States returns the possible states of a delivery.
func States() []string { return []string{"pending", "delivered", "dead"} }

// ListDeliveries returns at most limit deliveries to an endpoint with ids less than before, newest first. An empty
// before starts with the newest delivery. An empty state selects all states.
func ListDeliveries(ctx context.Context, q db.Querier, endpointID, state, before string, limit int) ([]Delivery, error) {
	sql, args := "SELECT "+sentColumns+" FROM webhook_deliveries WHERE endpoint_id = $1 AND ($2 = '' OR id < $2)", []any{
		endpointID, before, limit,
	}
	switch state {
	case "":
	case "dead": // a literal instead of an argument lets Postgres use the partial index
		sql += " AND state = 'dead'"
	case "pending":
		sql += " AND state = 'pending'"
	default:
		sql, args = sql+" AND state = $4", append(args, state)
	}
	return db.Collect(ctx, q, "failed to read deliveries", pgx.RowToStructByPos[Delivery], sql+" ORDER BY id DESC LIMIT $3", args...)
}

// ReadDelivery returns a delivery of the organization, and its body. It returns ErrUnknown if there is no such
// delivery.
func ReadDelivery(ctx context.Context, q db.Querier, orgID, id string) (s Delivery, body []byte, err error) {
	var packed []byte
	err = q.QueryRow(ctx, "SELECT "+sentColumns+", payload, "+packSQL+" FROM webhook_deliveries d WHERE org_id = $1 AND id = $2", orgID, id).
		Scan(
			&s.ID, &s.EndpointID, &s.CallID, &s.Type, &s.State, &s.Tries, &s.NextAt, &s.CreatedAt, &s.SettledAt, &s.Status, &s.Fault,
			&body, &packed,
		)
	if err == nil {
		body, err = unpack(id, body, packed)
	}
	return s, body, db.RowError(err, fmt.Sprintf("failed to read delivery %s", id), ErrUnknown)
}

// CountUndelivered counts the pending and the dead deliveries to an endpoint.
func CountUndelivered(ctx context.Context, q db.Querier, endpointID string) (waiting, dead int, err error) {
	err = q.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1 AND state = 'pending'),
			(SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1 AND state = 'dead')`, endpointID).Scan(&waiting, &dead)
	return waiting, dead, db.Wrap(err, "failed to read deliveries")
}
