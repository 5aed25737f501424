package apikeys

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/db"
)

// Window is the period in which requests are counted.
const Window = time.Minute

// Limiter counts the accepted requests of each key over a sliding window. It counts in the database, with the time of
// the database, so that the limit is exact across all processes. Each request runs one statement that locks the key.
type Limiter struct{ Pool *pgxpool.Pool }

// Quota is the state of a key's rate limit. Limit is 0 if the key has no limit.
type Quota struct {
	Limit, Remaining int
	// Reset is the time at which the oldest counted request leaves the window.
	Reset time.Time
}

// Admit reports whether a key may make one more request, and counts the request if so. A refused request is not
// counted, so the key is usable again after one window at the latest. If limit is 0 or less, Admit accepts the request
// without using the database.
func (l *Limiter) Admit(ctx context.Context, key string, limit int) (Quota, bool, error) {
	if limit <= 0 {
		return Quota{}, true, nil
	}
	q, ok := Quota{Limit: limit}, false
	err := l.Pool.QueryRow(ctx, "SELECT admitted, left_over, resets_at FROM admit($1, $2)", key, limit).Scan(&ok, &q.Remaining, &q.Reset)
	if err != nil {
		return Quota{}, false, fmt.Errorf("rate limit: %w", err)
	}
	return q, ok, nil
}

// Sweep deletes requests that have left the window, and the keys that have no other requests. Requests whose
// keys have a limit wait while Sweep runs.
func (l *Limiter) Sweep(ctx context.Context) error {
	return db.Tx(ctx, l.Pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"LOCK TABLE rate_windows IN EXCLUSIVE MODE",
			"DELETE FROM rate_requests WHERE at <= clock_timestamp() - interval '60 seconds'",
			"DELETE FROM rate_windows w WHERE NOT EXISTS (SELECT FROM rate_requests r WHERE r.key_id = w.key_id)",
			`UPDATE rate_windows w SET used = r.n
			FROM (SELECT key_id, count(*) AS n FROM rate_requests GROUP BY key_id) r WHERE r.key_id = w.key_id AND r.n <> w.used`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("sweep rate limits: %w", err)
			}
		}
		return nil
	})
}
