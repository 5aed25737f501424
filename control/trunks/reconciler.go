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

// Channel is the Postgres channel for notifications of changed trunks.
const Channel = "parley_trunks"

// All returns the trunks of all organizations, ordered by id.
func All(ctx context.Context, q db.Querier) ([]Trunk, error) {
	return db.Collect(ctx, q, "trunks", func(row pgx.CollectableRow) (Trunk, error) { return scan(row) },
		"SELECT "+columns+" FROM trunks ORDER BY id")
}

// Notify notifies running servers that trunks have changed. Postgres sends the notification when the transaction q
// commits.
func Notify(ctx context.Context, q db.Querier) error {
	_, err := db.Exec(ctx, q, "notify", "SELECT pg_notify($1, '')", Channel)
	return err
}

// ProxyMonitor tests the proxies of trunks. It registers with the proxies of trunks that set Register.
type ProxyMonitor interface {
	SetTrunks(trunks []media.Trunk)
	// Realms returns newly learned authentication realms by proxy.
	Realms() map[string]string
	// RestoreRealms sets realms that were learned earlier, by proxy.
	RestoreRealms(realms map[string]string)
}

// Reconciler passes the trunks of the database to a ProxyMonitor whenever they change.
type Reconciler struct {
	DB      db.Querier
	Proxies ProxyMonitor
	// Wake signals that trunks have changed. It may be nil.
	Wake <-chan struct{}
	// Interval is the maximum time between two reads; 0 means 10 s.
	Interval time.Duration
	Log      *slog.Logger

	realmLearned chan struct{}                     // contains a value while a learned realm is not stored yet
	once         sync.Once                         // creates realmLearned
	attested     atomic.Pointer[map[string]string] // attestation levels by caller number, at the last read
	byID         atomic.Pointer[map[string]media.Trunk]
}

// Attest returns the attestation level of a caller number (RFC 8588): "A", "B", "C" or "". If several trunks have the
// number, it returns the lowest of their levels. It is safe for concurrent use.
func (u *Reconciler) Attest(number string) string {
	if known := u.attested.Load(); known != nil {
		return (*known)[control.Digits(number)]
	}
	return ""
}

// OnRealm makes Run store newly learned realms. It never blocks.
func (u *Reconciler) OnRealm() {
	select {
	case u.realmSignal() <- struct{}{}:
	default: // a signal is pending already
	}
}

func (u *Reconciler) realmSignal() chan struct{} {
	u.once.Do(func() { u.realmLearned = make(chan struct{}, 1) })
	return u.realmLearned
}

// Trunks returns the trunks at the last read, by id. The caller must not change them. It is safe for concurrent use.
func (u *Reconciler) Trunks() map[string]media.Trunk {
	if known := u.byID.Load(); known != nil {
		return *known
	}
	return nil
}

// Run reads the trunks repeatedly until ctx ends. It keeps the last trunks while the database is unavailable.
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
