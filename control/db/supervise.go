package db

import (
	"context"
	"time"
)

// Pauses before Postgres is started again.
const (
	firstPause  = 200 * time.Millisecond
	longestWait = 10 * time.Second
	// steady is the run time of Postgres after which the next pause is firstPause again.
	steady = time.Minute
)

// supervise starts Postgres again after each exit, and stops it when ctx ends. If c is nil, it starts Postgres first.
// The caller must hold the lock, so that no other process starts Postgres.
func (l *Local) supervise(ctx context.Context, c *child) {
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
		l.log().ErrorContext(ctx, "Postgres exited; restarting", "log", l.logTail(), "in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// relaunch tries to start Postgres until it succeeds. It returns nil if ctx ends first.
func (l *Local) relaunch(ctx context.Context) *child {
	for pause := firstPause; ; pause = min(2*pause, longestWait) {
		c, err := l.launch(ctx)
		if err == nil {
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
		l.log().ErrorContext(ctx, "failed to start Postgres; retrying", "err", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// standBy waits until this process can become the owner, and then starts Postgres.
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
			l.supervise(ctx, nil)
			return
		}
	}
}
