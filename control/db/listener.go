package db

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Listener wakes workers through LISTEN and NOTIFY. Notifications are lost while the connection is down, so workers
// must also poll.
type Listener struct {
	// Pool is DB.ListenPool. If it is nil, Run does nothing.
	Pool *pgxpool.Pool
	Log  *slog.Logger

	mu          sync.Mutex
	subscribers map[string][]chan struct{}
}

// Subscribe returns a channel that receives a value after a notification on the named Postgres channel. Several
// notifications may arrive as one value. Call Subscribe before Run.
func (b *Listener) Subscribe(name string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscribers == nil {
		b.subscribers = map[string][]chan struct{}{}
	}
	c := make(chan struct{}, 1)
	b.subscribers[name] = append(b.subscribers[name], c)
	return c
}

// Run listens until ctx ends. It reconnects after errors.
func (b *Listener) Run(ctx context.Context) {
	for b.Pool != nil && ctx.Err() == nil {
		err := b.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if b.Log != nil {
			b.Log.WarnContext(ctx, "notification connection lost; reconnecting", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (b *Listener) listen(ctx context.Context) error {
	conn, err := b.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	// A connection that listens must not return to the pool.
	c := conn.Hijack()
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for _, name := range b.names() {
		if _, err := c.Exec(ctx, "LISTEN "+name); err != nil {
			return err
		}
	}
	for _, name := range b.names() { // wake all, because notifications may have been missed while disconnected
		b.wake(name)
	}
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		b.wake(n.Channel)
	}
}

func (b *Listener) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for name := range b.subscribers {
		all = append(all, name)
	}
	return all
}

func (b *Listener) wake(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.subscribers[name] {
		select {
		case c <- struct{}{}:
		default: // a value is waiting already
		}
	}
}
