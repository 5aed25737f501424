package db

import (
	"context"
	"time"
)

// Pauses before a Postgres that died, or would not start, is started again.
const (
	firstPause  = 200 * time.Millisecond
	longestWait = 10 * time.Second
	// steady is how long a Postgres must have lived for the next pause to be
	// the first one again.
	steady = time.Minute
)

// keepUp starts Postgres again each time it dies, and ends it when ctx ends. A
// nil child is one that is to be started. The caller holds the lock, so nobody
// else would start one.
func (l *Local) keepUp(ctx context.Context, c *child) {
	for pause := firstPause; ; pause = min(2*pause, longestWait) {
		if c == nil {
			if c = l.relaunch(ctx); c == nil {
				return
			}
		}
		born := time.Now()
		select {
		case <-ctx.Done():
			c.stop()
			return
		case <-c.done:
		}
		c = nil
		if time.Since(born) > steady {
			pause = firstPause
		}
		l.log().ErrorContext(ctx, "Postgres died; it is started again", "log", l.lastWords(), "in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// relaunch tries to start Postgres until it runs. It returns nil where ctx ended
// first.
func (l *Local) relaunch(ctx context.Context) *child {
	for pause := firstPause; ; pause = min(2*pause, longestWait) {
		c, err := l.launch(ctx)
		if err == nil {
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
		l.log().ErrorContext(ctx, "Postgres cannot be started", "err", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// standBy waits to become the owner, and then starts Postgres again.
func (l *Local) standBy(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if owner, err := l.takeLock(); err == nil && owner {
			l.keepUp(ctx, nil)
			return
		}
	}
}
