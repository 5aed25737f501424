package trunks

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Bell rings when trunks were changed.
const Bell = "parley_trunks"

// All returns the trunks of all organizations, by id.
func All(ctx context.Context, q db.Querier) ([]Trunk, error) {
	rows, err := q.Query(ctx, "SELECT "+columns+" FROM trunks ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("trunks: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Trunk, error) { return scan(row) })
	if err != nil {
		return nil, fmt.Errorf("trunks: %w", err)
	}
	return all, nil
}

// Ring tells running servers that trunks were changed, once the transaction
// that q is has been committed.
func Ring(ctx context.Context, q db.Querier) error {
	if _, err := q.Exec(ctx, "SELECT pg_notify($1, '')", Bell); err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	return nil
}

// A Keeper looks after the trunks it was told last: it asks their proxies how
// they are, and registers where a trunk wants it.
type Keeper interface {
	Keep(trunks []media.Trunk)
}

// An Upkeep has a keeper look after the trunks that the database names.
type Upkeep struct {
	Trunks db.Querier
	Keeper Keeper
	// Wake, where set, says that trunks may have changed.
	Wake <-chan struct{}
	// Every is how often the trunks are read without being woken; 0 means 10 s.
	Every time.Duration
	Log   *slog.Logger

	attested atomic.Pointer[map[string]string] // the last levels read
}

// Attest is how sure the operator is of a caller number (RFC 8588): A, B, C, or
// "" for not at all. A number that may be shown on several trunks is attested as
// the least sure of them does. It may be asked by any goroutine.
func (u *Upkeep) Attest(number string) string {
	if known := u.attested.Load(); known != nil {
		return (*known)[control.Digits(number)]
	}
	return ""
}

// Run looks again and again until ctx ends. While the database is away all
// stays as it was.
func (u *Upkeep) Run(ctx context.Context) {
	every := u.Every
	if every == 0 {
		every = 10 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		u.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-u.Wake:
		case <-tick.C:
		}
	}
}

// lookFor bounds one reading of the trunks.
const lookFor = 5 * time.Second

// Look reads the trunks once.
func (u *Upkeep) Look(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	all, err := All(short, u.Trunks)
	var shown []shown
	if err == nil {
		shown, err = allShown(short, u.Trunks)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if u.Log != nil {
			u.Log.WarnContext(ctx, "the trunks cannot be read", "err", err)
		}
		return
	}
	attested := attest(all, shown)
	u.attested.Store(&attested)
	lines := make([]media.Trunk, 0, len(all))
	for _, t := range all {
		lines = append(lines, t.Line())
	}
	u.Keeper.Keep(lines)
}
