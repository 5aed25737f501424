package store

import (
	"context"
	"fmt"
)

// Unsettled is how many events of a data directory are not followed to their
// end, and how many webhooks are due now: what a node that goes down would leave
// to its next start, or to others.
func (s *Store) Unsettled(ctx context.Context, home string) (int, error) {
	var n int
	err := s.Pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM events WHERE done_at IS NULL AND home = $1 AND next_at <= clock_timestamp())
		     + (SELECT count(*) FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
		        WHERE d.state = 'pending' AND d.next_at <= clock_timestamp() AND e.disabled_at IS NULL
		          AND (e.throttled_until IS NULL OR e.throttled_until <= clock_timestamp()))`, home).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("unsettled work: %w", err)
	}
	return n, nil
}
