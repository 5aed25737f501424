package desk

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
	"github.com/parley-voice/parley/campaigns/tallies"
	"github.com/parley-voice/parley/control/db"
)

// Run moves campaigns on as time goes by, looks after their tallies, and sweeps the files
// of rows that nobody needs, until ctx ends. Any number of servers may do so at a time.
func (d *Desk) Run(ctx context.Context, log *slog.Logger) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { d.sources().Run(ctx, log) })
	beside.Go(func() { (&tallies.Tallies{Pool: d.Pool}).Run(ctx, log) })
	tick := time.NewTicker(time.Second) // whose time has come
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := d.Pass(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "campaigns were not looked at", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Pass opens the campaigns whose start has come, closes those whose end has, and
// completes those that run and have nobody left to call.
func (d *Desk) Pass(ctx context.Context) error {
	for {
		moved := 0
		var faults []error
		err := db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
			now, err := d.clock(ctx, tx)
			if err != nil {
				return err
			}
			all, err := d.Store.Due(ctx, tx, now)
			for _, c := range all {
				fault := pgx.BeginFunc(ctx, tx, func(own pgx.Tx) error { return d.pass(ctx, own, &c, now) })
				if fault != nil { // the others go on
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

// clock is the database's: servers move campaigns at the same instant. What happens
// until it is asked again is dated by how far it was ahead of ours.
func (d *Desk) clock(ctx context.Context, q db.Querier) (now time.Time, err error) {
	if d.Now != nil {
		return d.Now().UTC().Truncate(time.Microsecond), nil
	}
	if err = q.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err == nil {
		d.ahead.Store(int64(time.Until(now)))
	}
	return now.UTC(), err
}

// pass moves a campaign, which is locked, as far as it goes.
func (d *Desk) pass(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, now time.Time) error {
	err := d.arrive(ctx, tx, c, now)
	if err == nil && c.Status == campaigns.Running && !c.Open {
		err = d.drain(ctx, tx, c, now)
	}
	return err
}

// arrive moves a campaign, which is locked, to where time has brought it.
func (d *Desk) arrive(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, now time.Time) error {
	status, reason := c.Due(now)
	switch status {
	case c.Status:
		return nil
	case campaigns.Completed:
		return d.complete(ctx, tx, c, reason, now)
	default:
		c.Status, c.UpdatedAt = status, now
		return d.record(ctx, tx, *c, store.Entry{Action: store.Opened, Via: campaigns.BySystem, At: now})
	}
}

// drain completes a running campaign, which is locked, that has nobody left.
func (d *Desk) drain(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, now time.Time) error {
	over, err := d.Store.Drained(ctx, tx, c.ID)
	if err != nil || !over {
		return err
	}
	return d.complete(ctx, tx, c, campaigns.QueueDrained, now)
}

func (d *Desk) complete(ctx context.Context, tx pgx.Tx, c *campaigns.Campaign, reason string, now time.Time) error {
	c.Status, c.StatusReason, c.CompletedAt, c.UpdatedAt = campaigns.Completed, reason, now, now
	return d.record(ctx, tx, *c, store.Entry{Action: store.WasEnded, Via: campaigns.BySystem, Detail: reason, At: now})
}

// record writes where a campaign stands, and what was done to it.
func (d *Desk) record(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, e store.Entry) error {
	if err := d.Store.Move(ctx, tx, c); err != nil {
		return err
	}
	return d.Store.Log(ctx, tx, c, e)
}
