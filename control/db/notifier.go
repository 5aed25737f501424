package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Notifier merges frequent notifications. A notifying transaction blocks other notifying
// ones while it commits, so callers that tolerate a short delay notify here.
type Notifier struct {
	Pool *pgxpool.Pool
	// Name is the Postgres channel.
	Name string

	pending chan struct{}
}

// NewNotifier returns a notifier of a Postgres channel.
func NewNotifier(pool *pgxpool.Pool, name string) *Notifier {
	return &Notifier{Pool: pool, Name: name, pending: make(chan struct{}, 1)}
}

// notifyInterval is the minimum time between two notifications.
const notifyInterval = 10 * time.Millisecond

// Notify sends a notification soon. It never blocks.
func (r *Notifier) Notify() {
	select {
	case r.pending <- struct{}{}:
	default: // already pending
	}
}

// Run sends notifications until ctx ends. A failed one is lost: receivers poll as well.
func (r *Notifier) Run(ctx context.Context) {
	for {
		select {
		case <-r.pending:
		case <-ctx.Done():
			return
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = r.Pool.Exec(short, "SELECT pg_notify($1, '')", r.Name) // see above
		cancel()
		select {
		case <-time.After(notifyInterval):
		case <-ctx.Done():
			return
		}
	}
}
