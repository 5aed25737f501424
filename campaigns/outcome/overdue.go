package outcome

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

const (
	// maxAnalysisWait bounds the wait of a contact for the analysis of its call.
	maxAnalysisWait = 15 * time.Minute
	settleInterval  = 10 * time.Second
)

// An OverdueSettler settles contacts whose analysis does not arrive, as if the analysis had failed. Any number of
// nodes may run it.
type OverdueSettler struct {
	Recorder *Recorder
	Log      *slog.Logger
}

// Run settles overdue contacts until ctx ends.
func (o *OverdueSettler) Run(ctx context.Context) {
	tick := time.NewTicker(settleInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := o.Settle(ctx); err != nil && ctx.Err() == nil {
				o.Log.WarnContext(ctx, "failed to settle contacts with an overdue analysis", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Settle settles all overdue contacts and returns how many. A failure of one contact does not delay the others;
// Settle returns the failure.
func (o *OverdueSettler) Settle(ctx context.Context) (n int, err error) {
	for {
		settled := 0
		var faults []error
		err = db.Tx(ctx, o.Recorder.Pool, func(tx pgx.Tx) error {
			calls, fault := o.Recorder.Store.Attempts.Overdue(ctx, tx, maxAnalysisWait)
			for _, id := range calls {
				failed := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
					_, failure := o.Recorder.RecordAnalysis(ctx, inner, id, nil, spreadOf(id))
					return failure
				})
				if failed != nil {
					faults = append(faults, fmt.Errorf("call %s: %w", id, failed))
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
