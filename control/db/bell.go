package db

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Bell wakes those who wait for work, by LISTEN and NOTIFY. A ring is a hint
// and no more: it is lost while the connection is down, so whoever waits polls
// as well.
type Bell struct {
	Pool *pgxpool.Pool
	Log  *slog.Logger

	mu    sync.Mutex
	waits map[string][]chan struct{}
}

// On returns a channel that gets a value after something happened on the
// Postgres channel name. Rings that nobody took yet melt into one. It must be
// called before Run.
func (b *Bell) On(name string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits == nil {
		b.waits = map[string][]chan struct{}{}
	}
	c := make(chan struct{}, 1)
	b.waits[name] = append(b.waits[name], c)
	return c
}

// Run listens until ctx ends, and connects anew when the connection breaks.
func (b *Bell) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := b.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if b.Log != nil {
			b.Log.WarnContext(ctx, "the wake-up connection broke", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (b *Bell) listen(ctx context.Context) error {
	conn, err := b.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// A connection that listens must not go back to the pool.
	c := conn.Hijack()
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for _, name := range b.names() {
		if _, err := c.Exec(ctx, "LISTEN "+name); err != nil {
			return err
		}
	}
	for _, name := range b.names() { // what rang while nobody listened
		b.ring(name)
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		b.ring(n.Channel)
	}
}

func (b *Bell) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for name := range b.waits {
		all = append(all, name)
	}
	return all
}

func (b *Bell) ring(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.waits[name] {
		select {
		case c <- struct{}{}:
		default: // a ring is already there; one is enough
		}
	}
}
