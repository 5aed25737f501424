package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// A Sent notice is one as its operator sees it.
type Sent struct {
	ID, EndpointID, CallID, Type, State string
	Tries                               int
	NextAt, CreatedAt                   time.Time // NextAt counts while it is pending
	SettledAt                           *time.Time
	Status                              int    // of the last answer; 0: there was none
	Fault                               string // why there was none
}

const sentColumns = "id, endpoint_id, call_id, type, state, tries, next_at, created_at, settled_at, coalesce(last_status, 0), last_error"

// States lists the states of notices.
func States() []string { return []string{"pending", "delivered", "dead"} }

// Notices returns the notices to an endpoint, the newest first: those before an id,
// or the newest where it is empty, limit of them at most. Of a state, where that is
// not empty.
func Notices(ctx context.Context, q db.Querier, endpointID, state, before string, limit int) ([]Sent, error) {
	sql, args := "SELECT "+sentColumns+" FROM webhook_deliveries WHERE endpoint_id = $1 AND ($2 = '' OR id < $2)", []any{endpointID, before, limit}
	switch state {
	case "":
	case "dead": // written out, so that its own index is taken
		sql += " AND state = 'dead'"
	case "pending":
		sql += " AND state = 'pending'"
	default:
		sql, args = sql+" AND state = $4", append(args, state)
	}
	rows, err := q.Query(ctx, sql+" ORDER BY id DESC LIMIT $3", args...)
	if err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Sent])
	if err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	return all, nil
}

// ReadNotice returns an organization's notice and its body, or ErrUnknown.
func ReadNotice(ctx context.Context, q db.Querier, orgID, id string) (s Sent, body []byte, err error) {
	err = q.QueryRow(ctx, "SELECT "+sentColumns+", payload FROM webhook_deliveries WHERE org_id = $1 AND id = $2", orgID, id).
		Scan(&s.ID, &s.EndpointID, &s.CallID, &s.Type, &s.State, &s.Tries, &s.NextAt, &s.CreatedAt, &s.SettledAt, &s.Status, &s.Fault, &body)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil, ErrUnknown
	}
	if err != nil {
		return s, nil, fmt.Errorf("notice %s: %w", id, err)
	}
	return s, body, nil
}

// Left counts the notices to an endpoint that wait, and that were given up.
func Left(ctx context.Context, q db.Querier, endpointID string) (waiting, dead int, err error) {
	err = q.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1 AND state = 'pending'),
			(SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1 AND state = 'dead')`, endpointID).Scan(&waiting, &dead)
	if err != nil {
		return 0, 0, fmt.Errorf("notices: %w", err)
	}
	return waiting, dead, nil
}
