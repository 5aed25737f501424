package follow

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/control/db"
)

const (
	// longest is how long a contact awaits the analysis of its call.
	longest = 15 * time.Minute
	look    = 10 * time.Second
)

// Overdue settles contacts that await an analysis which does not come: they go on
// as if it had failed. Any number of servers may do so at a time.
type Overdue struct {
	Desk *desk.Desk
	Log  *slog.Logger
}

// Run looks for them until ctx ends.
func (o *Overdue) Run(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := o.Pass(ctx); err != nil && ctx.Err() == nil {
				o.Log.WarnContext(ctx, "contacts await an analysis for too long", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Pass settles those that there are, and returns how many.
func (o *Overdue) Pass(ctx context.Context) (n int, err error) {
	for more := true; more && err == nil; {
		err = db.Tx(ctx, o.Desk.Pool, func(tx pgx.Tx) error {
			calls, fault := o.Desk.Store.Overdue(ctx, tx, longest)
			for _, id := range calls {
				if fault == nil {
					_, fault = o.Desk.Verdict(ctx, tx, id, nil, spread(id))
				}
			}
			n += len(calls)
			more = len(calls) > 0
			return known(fault)
		})
	}
	return n, err
}
