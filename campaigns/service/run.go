package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// Run starts, ends and completes campaigns when their time comes, folds their tallies,
// and deletes unused import files, until ctx ends. Any number of nodes may run it.
func (svc *Service) Run(ctx context.Context, log *slog.Logger) {
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { svc.importFiles().Run(ctx, log) })
	others.Go(func() { (&store.TallyFolder{Pool: svc.Pool}).Run(ctx, log) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := svc.RunDue(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "failed to advance campaigns", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// RunDue starts the campaigns whose start has come, ends those whose end has come, and
// completes running ones without a contact left. A failure of one campaign does not
// delay the others.
func (svc *Service) RunDue(ctx context.Context) error {
	for {
		if due, err := svc.anyDue(ctx); err != nil || !due {
			return err
		}
		moved := 0
		var faults []error
		err := db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
			now, err := svc.clock(ctx, tx)
			if err != nil {
				return err
			}
			all, err := svc.Store.Due(ctx, tx, now)
			for _, c := range all {
				fault := pgx.BeginFunc(ctx, tx, func(own pgx.Tx) error { return lifecycle{svc.Store}.advance(ctx, own, &c, now) })
				if fault != nil {
					faults = append(faults, fmt.Errorf("campaign %s: %w", c.ID, fault))
					continue
				}
				moved++
			}
			return err
		})
		if err = errors.Join(append(faults, err)...); err != nil || moved == 0 {
			return err
		}
	}
}

// A lifecycle changes the status of campaigns. Its callers have locked the campaigns.
type lifecycle struct{ store *store.Store }

// advance starts or ends a campaign if its time has come, and completes it if no contact is left.
func (l lifecycle) advance(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, now time.Time) error {
	err := l.applyTime(ctx, tx, c, now)
	if err == nil && c.Status == campaigns.Running && !c.Open {
		err = l.completeIfDrained(ctx, tx, c, now)
	}
	return err
}

// applyTime starts or ends a campaign whose start or end has come.
func (l lifecycle) applyTime(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, now time.Time) error {
	status, reason := c.StatusAt(now)
	switch status {
	case c.Status:
		return nil
	case campaigns.Completed:
		return l.complete(ctx, tx, c, reason, now)
	default:
		c.Status, c.UpdatedAt = status, now
		return l.record(ctx, tx, *c, store.LogEntry{Action: store.WasStarted, Via: campaigns.BySystem, At: now})
	}
}

// completeIfDrained completes a running campaign that has no contact left to call.
func (l lifecycle) completeIfDrained(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, now time.Time) error {
	drained, err := l.store.IsDrained(ctx, tx, c.ID)
	if err != nil || !drained {
		return err
	}
	return l.complete(ctx, tx, c, campaigns.QueueDrained, now)
}

func (l lifecycle) complete(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, reason string, now time.Time) error {
	c.Status, c.StatusReason, c.CompletedAt, c.UpdatedAt = campaigns.Completed, reason, now, now
	return l.record(ctx, tx, *c, store.LogEntry{Action: store.WasEnded, Via: campaigns.BySystem, Detail: reason, At: now})
}

// record writes the status of a campaign and a log entry.
func (l lifecycle) record(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, e store.LogEntry) error {
	if err := l.store.SaveStatus(ctx, tx, c); err != nil {
		return err
	}
	return l.store.AddLog(ctx, tx, c, e)
}
