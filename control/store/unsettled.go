package store

import (
	"context"
	"time"

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

// A Backlog is the work of all nodes that waits in the database. Counts stop at 100,000.
type Backlog struct {
	Calls, Events, Deliveries, DeadDeliveries int
	// Ages of the oldest call in the dial queue, of the oldest event that is not processed, and of the oldest webhook
	// delivery that is due to an active endpoint.
	CallAge, EventAge, DeliveryAge time.Duration
}

// ReadBacklog reads the backlog.
func ReadBacklog(ctx context.Context, q db.Querier) (b Backlog, err error) {
	err = q.QueryRow(ctx, `
		WITH calls AS MATERIALIZED (SELECT created_at FROM attempts WHERE state = 'scheduled' ORDER BY created_at LIMIT 100000),
		events AS MATERIALIZED (SELECT created_at FROM events WHERE done_at IS NULL LIMIT 100000),
		waiting AS MATERIALIZED (SELECT d.next_at, e.disabled_at IS NULL AS active FROM webhook_deliveries d
			JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE d.state = 'pending' LIMIT 100000)
		SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM events), (SELECT count(*) FROM waiting),
			(SELECT count(*) FROM (SELECT FROM webhook_deliveries WHERE state = 'dead' LIMIT 100000) x),
			greatest(interval '0', clock_timestamp() - (SELECT min(created_at) FROM calls)),
			greatest(interval '0', clock_timestamp() - (SELECT min(created_at) FROM events)),
			greatest(interval '0', clock_timestamp() - (SELECT min(next_at) FROM waiting WHERE active))`).
		Scan(&b.Calls, &b.Events, &b.Deliveries, &b.DeadDeliveries, &b.CallAge, &b.EventAge, &b.DeliveryAge)
	return b, db.Wrap(err, "failed to read the backlog")
}
