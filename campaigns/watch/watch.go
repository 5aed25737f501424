// Package watch looks after campaigns that run: it keeps the breakers of their
// routes, as control/breaker decides, and measures how they get on. One server
// does so at a time for all; each tells the others which trunks it cannot reach.
package watch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control/breaker"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/metrics"
	"github.com/parley-voice/parley/control/trunks"
)

// A Watch looks after routes.
type Watch struct {
	Pool  *pgxpool.Pool
	Rules breaker.Rules
	Owner string // this node
	// Down tells that no proxy of a trunk takes calls, as far as this node sees.
	Down func(trunks.Trunk) bool
	// Progress says how far a campaign is, and IdleAfter how long one may dial
	// nobody, though it could, before the figures say so.
	Progress  func(ctx context.Context, orgID, id string) (progress.Progress, error)
	IdleAfter time.Duration
	Log       *slog.Logger

	mine atomic.Bool          // the duty, as of the last look
	idle map[string]time.Time // since when campaigns could dial and do not

	mu      sync.Mutex
	down    map[string]bool   // trunks, by id, that this node cannot reach
	figures metrics.Campaigns // of the last measure
	states  map[string]string // of the breakers of routes, as of the last look
}

// Times.
const (
	tick       = time.Second     // between two looks at the routes
	sightEvery = 5 * time.Second // between two of what a node tells of its trunks
	sightLasts = 15 * time.Second
	dutyLasts  = 5 * time.Second // of a server that says nothing any more
)

// Run looks until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { w.measure(ctx) })
	defer beside.Wait()
	looks := time.NewTicker(tick)
	defer looks.Stop()
	var told time.Time
	for {
		select {
		case <-ctx.Done():
			w.leave(context.WithoutCancel(ctx))
			return
		case <-looks.C:
		}
		if time.Since(told) >= sightEvery {
			told = time.Now()
			w.warn(ctx, "trunks were not looked at", w.Tell(ctx))
		}
		_, err := w.Look(ctx)
		w.warn(ctx, "routes were not looked at", err)
	}
}

func (w *Watch) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil && w.Log != nil {
		w.Log.WarnContext(ctx, what, "err", err)
	}
}

// Unreachable tells that this node cannot reach a trunk: others may.
func (w *Watch) Unreachable(trunkID string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down[trunkID]
}

// Tell tells the others how this node sees the trunks that campaigns call
// through.
func (w *Watch) Tell(ctx context.Context) error {
	found, err := w.Pool.Query(ctx, "SELECT DISTINCT trunk_id FROM campaigns WHERE status = 'running'")
	if err != nil {
		return fmt.Errorf("campaigns: %w", err)
	}
	used, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("campaigns: %w", err)
	}
	var all []trunks.Trunk
	if len(used) > 0 {
		if all, err = trunks.All(ctx, w.Pool); err != nil {
			return err
		}
	}
	in := map[string]bool{}
	for _, id := range used {
		in[id] = true
	}
	down := map[string]bool{}
	var ids []string
	var bad []bool
	for _, t := range all {
		if in[t.ID] {
			down[t.ID] = w.Down != nil && w.Down(t)
			ids, bad = append(ids, t.ID), append(bad, down[t.ID])
		}
	}
	w.mu.Lock()
	w.down = down
	w.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	_, err = w.Pool.Exec(ctx, `
		INSERT INTO trunk_sights (trunk_id, node, down, at)
		SELECT x.id, $1, x.down, clock_timestamp() FROM unnest($2::text[], $3::boolean[]) AS x (id, down) JOIN trunks t ON t.id = x.id ORDER BY x.id
		ON CONFLICT (trunk_id, node) DO UPDATE SET down = excluded.down, at = excluded.at`, w.Owner, ids, bad)
	if err != nil {
		return fmt.Errorf("trunks: %w", err)
	}
	return nil
}

// dutySQL takes the duty, or keeps it, and tells what time it is. Whoever asks
// meanwhile waits for the transaction.
const dutySQL = `
INSERT INTO duties AS d (name, owner, until) VALUES ('routes', $1, clock_timestamp() + $2::interval)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE d.owner = excluded.owner OR d.until < clock_timestamp()
RETURNING clock_timestamp()`

// Look steps the breakers of all routes that campaigns call through, if that is
// this node's duty, and tells whether it is.
func (w *Watch) Look(ctx context.Context) (mine bool, err error) {
	err = db.Tx(ctx, w.Pool, func(tx pgx.Tx) error {
		found, fault := tx.Query(ctx, dutySQL, w.Owner, dutyLasts)
		if fault != nil {
			return fault
		}
		times, fault := pgx.CollectRows(found, pgx.RowTo[time.Time])
		if fault != nil || len(times) == 0 {
			return fault
		}
		mine = true
		return w.step(ctx, tx, times[0])
	})
	if w.mine.Store(mine && err == nil); !w.mine.Load() {
		w.show(nil)
	}
	if err != nil {
		return false, fmt.Errorf("routes: %w", err)
	}
	return mine, nil
}

// leave lets another node have the duty at once, and forgets what this one saw.
func (w *Watch) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue("DELETE FROM duties WHERE name = 'routes' AND owner = $1", w.Owner)
	batch.Queue("DELETE FROM trunk_sights WHERE node = $1", w.Owner)
	_ = w.Pool.SendBatch(ctx, batch).Close() // else both lapse
}
