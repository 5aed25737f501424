package store

import (
	"context"

	"github.com/parley-voice/parley/control/db"
)

// PendingWork counts what a stopping node would leave behind: the events of its data directory and the webhook
// deliveries that are due now.
func PendingWork(ctx context.Context, q db.Querier, home string) (int, error) {
	var n int
	err := q.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM events WHERE done_at IS NULL AND home = $1 AND next_at <= clock_timestamp())
		     + (SELECT count(*) FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
		        WHERE d.state = 'pending' AND d.next_at <= clock_timestamp() AND e.disabled_at IS NULL
		          AND (e.throttled_until IS NULL OR e.throttled_until <= clock_timestamp()))`, home).Scan(&n)
	return n, db.Wrap(err, "failed to count pending work")
}
