package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/failover"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// restoreDrill is a service whose database is lost while a campaign runs, and restored from a backup.
type restoreDrill struct {
	t       *testing.T
	backup  *dbtest.Backup
	config  config.Config
	srv     *server
	api     *demo.Client
	invites inviteCounter
	id      string // of the campaign
}

const (
	drillOrders   = 3
	drillContacts = 40
)

// newRestoreDrill places single calls, calls prepare, and launches the campaign.
func newRestoreDrill(t *testing.T, prepare func(*restoreDrill)) *restoreDrill {
	t.Helper()
	d := &restoreDrill{t: t, backup: dbtest.NewBackup(t), config: testConfig(t), api: &demo.Client{}}
	c := carrier(t, &siptest.Carrier{Answer: d.invites.accept(200 * time.Millisecond)})
	d.config.DatabaseURL, d.config.Lease = media.Secret(d.backup.URL()), 3*time.Second
	t.Cleanup(d.stop)
	d.start()
	key, err := createDemo(t.Context(), d.srv.db, fmt.Sprintf(demo.File, "127.0.0.1:9", demo.Secret, c.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	d.api.Key = key
	d.srv.allowAnyHour(t)
	for n := range drillOrders {
		waitEnded(t, d.api, requestCall(t, d.api, fmt.Sprintf("+1202555%04d", n)))
	}
	prepare(d)
	d.id = campaign(t, d.api, map[string]any{"calls_per_minute": 200}, many(drillContacts)...)
	d.waitCalled(drillOrders + 5)
	return d
}

func (d *restoreDrill) start() {
	d.t.Helper()
	srv, err := newServer(d.t.Context(), d.config, slog.New(slog.DiscardHandler))
	if err != nil {
		d.t.Fatal(err)
	}
	d.srv, d.api.URL = srv, srv.publicURL
}

func (d *restoreDrill) stop() {
	if d.srv == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d.srv.stop(ctx)
	d.srv = nil
}

func (d *restoreDrill) waitCalled(n int) {
	d.t.Helper()
	eventuallyWithin(d.t, time.Minute, fmt.Sprintf("%d numbers were called", n), func() bool { return len(d.invites.numbers()) >= n })
}

// waitHeld waits until the service holds the campaign because of the restore. It checks that no number is called.
func (d *restoreDrill) waitHeld() {
	d.t.Helper()
	called := d.invites.total()
	eventuallyWithin(d.t, 90*time.Second, "the campaign is held", func() bool {
		h, err := failover.ReadHolds(d.t.Context(), d.srv.db.Pool)
		return err == nil && h.Open && h.Restored && h.Campaigns == 1 && readProgress(d.t, d.api, d.id).HeldReasons["database_failover"] > 0
	})
	<-time.After(2 * time.Second)
	if n := d.invites.total(); n != called {
		d.t.Errorf("%d calls were placed before the release", n-called)
	}
	if out := d.command(0, "failover", "status"); !strings.Contains(out, "0 calls and 1 campaigns") || !strings.Contains(out, "the database was restored to its state of") {
		d.t.Errorf("failover status says %s", out)
	}
}

func (d *restoreDrill) command(want int, args ...string) string {
	d.t.Helper()
	code, out, errs := d.srv.parleyAs(d.t, []string{"PARLEY_DATABASE_URL=" + d.backup.URL()}, args...)
	if code != want {
		d.t.Errorf("%v exits with %d: %s%s", args, code, out, errs)
	}
	return out
}

func (d *restoreDrill) count(sql string) (n int) {
	d.t.Helper()
	if err := d.srv.db.Pool.QueryRow(d.t.Context(), sql).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// checkCalledOnce waits until no contact waits and no call is live, and checks that no number was called twice.
func (d *restoreDrill) checkCalledOnce() {
	d.t.Helper()
	eventuallyWithin(d.t, time.Minute, "the campaign has called the rest", func() bool {
		return d.count("SELECT count(*) FROM contacts WHERE state = 'pending'")+
			d.count("SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')") == 0
	})
	for number, n := range d.invites.numbers() {
		if n != 1 {
			d.t.Errorf("%s was called %d times", number, n)
		}
	}
}

// TestSoakPointInTimeRecovery loses the database while a campaign runs, and restores a base backup and the archived WAL to
// a moment before the last calls. Without the journal nothing may be called before an operator confirms it. With the
// journal the campaign continues, and no number is called twice.
func TestSoakPointInTimeRecovery(t *testing.T) {
	soakOnly(t)
	t.Parallel()
	d := newRestoreDrill(t, func(d *restoreDrill) { d.backup.Base() })
	at := d.backup.Now()
	before := len(d.invites.numbers())
	requestCall(t, d.api, "+12025559999") // the restored database does not know this order
	d.waitCalled(before + 8)
	d.stop()
	d.backup.Archive()
	d.backup.Kill(0)
	called := len(d.invites.numbers())
	journal := filepath.Join(d.config.DataDir, "journal")
	if err := os.Rename(journal, journal+".kept"); err != nil {
		t.Fatal(err)
	}
	d.backup.Restore(at)
	d.start()
	d.waitHeld()
	lost := called - d.count("SELECT count(*) FROM attempts WHERE state NOT IN ('scheduled', 'claimed')")
	if lost < 7 {
		t.Errorf("the restored database lacks %d calls, want at least 7", lost)
	}
	d.stop()

	if err := os.RemoveAll(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(journal+".kept", journal); err != nil {
		t.Fatal(err)
	}
	d.backup.Restore(at)
	d.start()
	d.waitCalled(drillOrders + drillContacts + 1)
	d.checkCalledOnce()
	s := d.srv.failover.Stats()
	if s.Settled+s.Facts < int64(lost) || s.Facts != 1 || s.Lost != 0 {
		t.Errorf("%d calls were lost: %+v", lost, s)
	}
	t.Logf("%d numbers called before the loss, %d calls unknown to the restored database; without the journal 0 calls before a release; "+
		"with it %d calls settled and %d known as sent, %d numbers called in all, 0 twice", called, lost, s.Settled, s.Facts, len(d.invites.numbers()))
}

// TestSoakDumpRestore restores a dump on the server that it came from, without the data directory of the node. Nothing may
// be called until an operator has withdrawn the numbers that were called since the dump, and releases the rest.
func TestSoakDumpRestore(t *testing.T) {
	soakOnly(t)
	t.Parallel()
	d := newRestoreDrill(t, func(*restoreDrill) {})
	dump := d.backup.Dump()
	before := len(d.invites.numbers())
	d.waitCalled(before + 8)
	d.stop()
	called := d.invites.numbers()
	if err := os.RemoveAll(filepath.Join(d.config.DataDir, "journal")); err != nil {
		t.Fatal(err)
	}
	d.backup.RestoreDump(dump)
	d.start()
	d.waitHeld()
	known := d.count("SELECT count(*) FROM attempts WHERE state NOT IN ('scheduled', 'claimed')")
	var phones []string // what the carrier's records say
	for number := range called {
		phones = append(phones, "+"+number)
	}
	if err := d.api.Do(t.Context(), http.MethodPost, "/v1/contacts/withdraw", map[string]any{"phones": phones}, new(any)); err != nil {
		t.Fatal(err)
	}
	d.command(1, "failover", "release")
	d.command(0, "failover", "release", "--yes")
	d.waitCalled(drillOrders + drillContacts)
	d.checkCalledOnce()
	t.Logf("%d numbers called before the restore, %d calls unknown to the dump; 0 calls before the release, %d numbers called in all, 0 twice",
		len(called), len(called)-known, len(d.invites.numbers()))
}
