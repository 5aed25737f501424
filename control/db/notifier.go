package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Notifier combines frequent notifications. While a transaction that notifies commits, it blocks all other
// transactions that notify. Callers that tolerate a short delay therefore use a Notifier.
type Notifier struct {
	Pool *pgxpool.Pool
	// Name is the name of the Postgres channel.
	Name string

	pending chan struct{}
}

// NewNotifier returns a notifier for a Postgres channel.
func NewNotifier(pool *pgxpool.Pool, name string) *Notifier {
	return &Notifier{Pool: pool, Name: name, pending: make(chan struct{}, 1)}
}

// notifyInterval is the minimum time between two notifications.
const notifyInterval = 10 * time.Millisecond

// Notify sends a notification within milliseconds. It never blocks.
func (r *Notifier) Notify() {
	select {
	case r.pending <- struct{}{}:
	default: // a notification is pending already
	}
}

// Run sends notifications until ctx ends. If sending fails, the notification is lost; receivers poll too.
func (r *Notifier) Run(ctx context.Context) {
	for {
		select {
		case <-r.pending:
		case <-ctx.Done():
			return
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = r.Pool.Exec(short, "SELECT pg_notify($1, '')", r.Name) // if sending fails, the notification is lost
		cancel()
		select {
		case <-time.After(notifyInterval):
		case <-ctx.Done():
			return
		}
	}
}
