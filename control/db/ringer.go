package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Ringer rings a bell for those who do so often. A transaction that notifies
// holds up all others that do while it commits; so those who may be heard a
// moment later ring here, and what they rang meanwhile melts into one.
type Ringer struct {
	Pool *pgxpool.Pool
	// Name is the Postgres channel.
	Name string

	rung chan struct{}
}

// NewRinger returns a ringer of a channel.
func NewRinger(pool *pgxpool.Pool, name string) *Ringer {
	return &Ringer{Pool: pool, Name: name, rung: make(chan struct{}, 1)}
}

// ringEvery is the least time between two notifications.
const ringEvery = 10 * time.Millisecond

// Ring has the bell rung soon. It never waits.
func (r *Ringer) Ring() {
	select {
	case r.rung <- struct{}{}:
	default: // it is about to be rung
	}
}

// Run rings until ctx ends. A ring that the database does not take is lost:
// whoever waits polls as well.
func (r *Ringer) Run(ctx context.Context) {
	for {
		select {
		case <-r.rung:
		case <-ctx.Done():
			return
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = r.Pool.Exec(short, "SELECT pg_notify($1, '')", r.Name) // see above
		cancel()
		select {
		case <-time.After(ringEvery):
		case <-ctx.Done():
			return
		}
	}
}
