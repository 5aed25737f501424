package trunks_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// proxyLog is a ProxyMonitor that sends the proxies of its trunks to a channel.
type proxyLog chan []string

func (k proxyLog) SetTrunks(lines []media.Trunk) {
	names := []string{}
	for _, l := range lines {
		names = append(names, l.Proxy)
	}
	k <- names
}

func (proxyLog) Realms() map[string]string       { return nil }
func (proxyLog) RestoreRealms(map[string]string) {}

// expect waits until k has received exactly these proxies.
func (k proxyLog) expect(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		select {
		case got := <-k:
			if slices.Equal(slices.Sorted(slices.Values(got)), want) {
				return
			}
		case <-deadline:
			t.Fatalf("did not receive %v", want)
		}
	}
}

func TestReconciler(t *testing.T) {
	d := dbtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	org, err := apikeys.EnsureOrganization(ctx, d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	save := func(name, proxy string) {
		t.Helper()
		_, fault := trunks.Save(ctx, d.Pool, trunks.Trunk{OrgID: org, Name: name, Proxy: proxy})
		if fault == nil {
			fault = trunks.Notify(ctx, d.Pool)
		}
		if fault != nil {
			t.Fatal(fault)
		}
	}
	save("a", "sip:a")
	_, err = d.Pool.Exec(ctx, `UPDATE trunks SET caller_numbers = '{+12025550100}', settings = '{"attest": {"+12025550100": "B"}}'`)
	if err != nil {
		t.Fatal(err)
	}
	listener := &db.Listener{Pool: d.Pool}
	proxies := make(proxyLog)
	reconciler := &trunks.Reconciler{DB: d.Pool, Proxies: proxies, Wake: listener.Subscribe(trunks.Channel), Interval: time.Hour}
	var running sync.WaitGroup
	if level := reconciler.Attest("+12025550100"); level != "" {
		t.Errorf("attested %s before anything was read", level)
	}
	running.Go(func() { listener.Run(ctx) })
	running.Go(func() { reconciler.Run(ctx) })
	proxies.expect(t, "sip:a")
	if level := reconciler.Attest("12025550100"); level != "B" {
		t.Errorf("attested %q, want B", level)
	}
	save("b", "sip:b")
	proxies.expect(t, "sip:a", "sip:b")
	if _, err := d.Pool.Exec(ctx, "DELETE FROM trunks WHERE name = 'a'"); err != nil {
		t.Fatal(err)
	}
	if err := trunks.Notify(ctx, d.Pool); err != nil {
		t.Fatal(err)
	}
	proxies.expect(t, "sip:b")
	cancel()
	over := make(chan struct{})
	go func() { running.Wait(); close(over) }()
	for {
		select {
		case <-proxies: // from a read that had already started
			continue
		case <-over:
		case <-time.After(5 * time.Second):
			t.Fatal("Run does not return")
		}
		break
	}
}

// TestReconcilerWithoutDatabase checks that the trunks stay as they are while the database is unavailable.
func TestReconcilerWithoutDatabase(t *testing.T) {
	d := dbtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.Pool.Close()
	proxies := make(proxyLog, 1)
	wake := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		(&trunks.Reconciler{DB: d.Pool, Proxies: proxies, Wake: wake, Interval: time.Hour}).Run(ctx)
	})
	wake <- struct{}{} // accepted only after the first read
	cancel()
	running.Wait()
	if len(proxies) > 0 {
		t.Errorf("the proxies became %v while the database was unavailable", <-proxies)
	}
}

// pinner is a ProxyMonitor that has learned the realms fresh. It records the restored realms.
type pinner struct{ fresh, restored map[string]string }

func (*pinner) SetTrunks([]media.Trunk)                  {}
func (p *pinner) Realms() map[string]string              { return p.fresh }
func (p *pinner) RestoreRealms(realms map[string]string) { p.restored = realms }

// TestRealmsAreStored checks that a learned realm is stored, passed to the next server, and deleted when no trunk names
// the proxy.
func TestRealmsAreStored(t *testing.T) {
	d := dbtest.New(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	line := trunks.Trunk{OrgID: org, Name: "a", Proxy: "sip:a", Settings: trunks.Settings{Backups: []string{"sip:b"}}}
	save := func() {
		t.Helper()
		if _, err := trunks.Save(t.Context(), d.Pool, line); err != nil {
			t.Fatal(err)
		}
	}
	save()
	look := func(what string, p *pinner, want map[string]string) {
		t.Helper()
		(&trunks.Reconciler{DB: d.Pool, Proxies: p}).Reconcile(t.Context())
		if !maps.Equal(p.restored, want) || p.restored == nil {
			t.Errorf("%s: %v, want %v", what, p.restored, want)
		}
	}
	look("before a call", &pinner{}, map[string]string{})
	look("pinned", &pinner{fresh: map[string]string{"sip:a": "one", "sip:b": "two"}}, map[string]string{"sip:a": "one", "sip:b": "two"})
	look("after a restart", &pinner{}, map[string]string{"sip:a": "one", "sip:b": "two"})
	look("pinned anew", &pinner{fresh: map[string]string{"sip:a": "three"}}, map[string]string{"sip:a": "three", "sip:b": "two"})
	if realm, err := trunks.Realm(t.Context(), d.Pool, "sip:a"); realm != "three" || err != nil {
		t.Errorf("the realm is %q, %v", realm, err)
	}
	line.Settings.Backups = nil
	save()
	look("a proxy is not named any more", &pinner{}, map[string]string{"sip:a": "three"})
	line.Settings.Backups = []string{"sip:b"}
	save()
	look("and again", &pinner{}, map[string]string{"sip:a": "three"})
}

// TestPinned checks that a learned realm is stored at once.
func TestPinned(t *testing.T) {
	d := dbtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	proxies := make(proxyLog)
	reconciler := &trunks.Reconciler{DB: d.Pool, Proxies: proxies, Interval: time.Hour}
	var running sync.WaitGroup
	running.Go(func() { reconciler.Run(ctx) })
	proxies.expect(t)
	reconciler.OnRealm()
	proxies.expect(t)
	cancel()
	running.Wait()
}
