package db

import (
	"context"
	"log/slog"
	"time"
)

// A Follower works through a queue in a table, one batch in each transaction, until its context ends.
type Follower struct {
	// Step handles the next batch, and returns its size. It returns 0 while another process works on the queue.
	Step func(ctx context.Context) (n int, err error)
	// Full is the size of a batch after which the next one follows without a pause.
	Full int
	// Poll is the pause after other batches; 0 means 2 s.
	Poll time.Duration
	// Failure is logged once when steps begin to fail; Log may be nil.
	Failure string
	Log     *slog.Logger
}

// Run handles batches until ctx ends.
func (f Follower) Run(ctx context.Context) {
	if f.Poll == 0 {
		f.Poll = 2 * time.Second
	}
	tick := time.NewTicker(f.Poll)
	defer tick.Stop()
	failing := false
	for {
		n, err := f.Step(ctx)
		if err != nil && !failing && ctx.Err() == nil && f.Log != nil {
			f.Log.WarnContext(ctx, f.Failure, "err", err)
		}
		if failing = err != nil; !failing && n == f.Full {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
