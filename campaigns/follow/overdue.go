package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/outcome"
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
	Ledger *outcome.Ledger
	Log    *slog.Logger
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

// Pass settles those that there are, and returns how many. One that cannot be
// settled is told of, and keeps nobody waiting.
func (o *Overdue) Pass(ctx context.Context) (n int, err error) {
	for {
		settled := 0
		var faults []error
		err = db.Tx(ctx, o.Ledger.Pool, func(tx pgx.Tx) error {
			calls, fault := o.Ledger.Store.Overdue(ctx, tx, longest)
			for _, id := range calls {
				one := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
					_, wrong := o.Ledger.Verdict(ctx, inner, id, nil, spread(id))
					return wrong
				})
				if one != nil {
					faults = append(faults, fmt.Errorf("call %s: %w", id, one))
					continue
				}
				settled++
			}
			return fault
		})
		if err != nil {
			return n, err
		}
		if n += settled; settled == 0 || ctx.Err() != nil {
			return n, errors.Join(faults...)
		}
	}
}
