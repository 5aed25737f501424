package trunks

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// Channel is notified when trunks change.
const Channel = "parley_trunks"

// All returns the trunks of all organizations, by id.
func All(ctx context.Context, q db.Querier) ([]Trunk, error) {
	return db.Collect(ctx, q, "trunks", func(row pgx.CollectableRow) (Trunk, error) { return scan(row) },
		"SELECT "+columns+" FROM trunks ORDER BY id")
}

// Notify signals running servers that trunks changed, after the transaction q commits.
func Notify(ctx context.Context, q db.Querier) error {
	_, err := db.Exec(ctx, q, "notify", "SELECT pg_notify($1, '')", Channel)
	return err
}

// ProxyMonitor probes the proxies of trunks and registers with them if configured.
type ProxyMonitor interface {
	SetTrunks(trunks []media.Trunk)
	// Realms returns newly learned realms by proxy.
	Realms() map[string]string
	// RestoreRealms sets the stored realms.
	RestoreRealms(realms map[string]string)
}

// Reconciler keeps a ProxyMonitor in sync with the trunks of the database.
type Reconciler struct {
	DB      db.Querier
	Proxies ProxyMonitor
	// Wake signals changed trunks; may be nil.
	Wake <-chan struct{}
	// Interval is the time between reads without a wake-up; 0 means 10 s.
	Interval time.Duration
	Log      *slog.Logger

	realmLearned chan struct{}                     // full while a realm is to be stored
	once         sync.Once                         // makes pinned
	attested     atomic.Pointer[map[string]string] // the last levels read
	byID         atomic.Pointer[map[string]media.Trunk]
}

// Attest returns the attestation level of a caller number (RFC 8588): A, B, C or "". With
// several trunks the lowest level applies. It is safe for concurrent use.
func (u *Reconciler) Attest(number string) string {
	if known := u.attested.Load(); known != nil {
		return (*known)[control.Digits(number)]
	}
	return ""
}

// OnRealm stores learned realms soon. It never blocks.
func (u *Reconciler) OnRealm() {
	select {
	case u.realmSignal() <- struct{}{}:
	default: // already pending
	}
}

func (u *Reconciler) realmSignal() chan struct{} {
	u.once.Do(func() { u.realmLearned = make(chan struct{}, 1) })
	return u.realmLearned
}

// Trunks returns the trunks last read, by id. The caller must not change them. It is safe for concurrent use.
func (u *Reconciler) Trunks() map[string]media.Trunk {
	if known := u.byID.Load(); known != nil {
		return *known
	}
	return nil
}

// Run reconciles until ctx ends. While the database is unavailable nothing changes.
func (u *Reconciler) Run(ctx context.Context) {
	every := u.Interval
	if every == 0 {
		every = 10 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		u.Reconcile(ctx)
		select {
		case <-ctx.Done():
			return
		case <-u.Wake:
		case <-u.realmSignal():
		case <-tick.C:
		}
	}
}

// readTimeout bounds one reading of the trunks.
const readTimeout = 5 * time.Second

// Reconcile reads the trunks once.
func (u *Reconciler) Reconcile(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := All(short, u.DB)
	var shown []callerNumber
	if err == nil {
		shown, err = listCallerNumbers(short, u.DB)
	}
	mediaTrunks := make([]media.Trunk, 0, len(all))
	for _, t := range all {
		mediaTrunks = append(mediaTrunks, t.MediaTrunk())
	}
	if err == nil {
		err = u.syncRealms(short, mediaTrunks)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if u.Log != nil {
			u.Log.WarnContext(ctx, "failed to read trunks", "err", err)
		}
		return
	}
	attested := attestLevels(all, shown)
	u.attested.Store(&attested)
	byID := make(map[string]media.Trunk, len(all))
	for i, t := range all {
		byID[t.ID] = mediaTrunks[i]
	}
	u.byID.Store(&byID)
	u.Proxies.SetTrunks(mediaTrunks)
}
