package trunks_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// A keeper hands on what it is to look after.
type keeper chan []string

func (k keeper) Keep(lines []media.Trunk) {
	proxies := []string{}
	for _, l := range lines {
		proxies = append(proxies, l.Proxy)
	}
	k <- proxies
}

// kept waits until the keeper was given these proxies.
func (k keeper) kept(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		select {
		case got := <-k:
			if slices.Equal(slices.Sorted(slices.Values(got)), want) {
				return
			}
		case <-deadline:
			t.Fatalf("nobody looks after %v", want)
		}
	}
}

func TestUpkeep(t *testing.T) {
	d := dbtest.New(t)
	ctx, quit := context.WithCancel(t.Context())
	org, err := access.EnsureOrganization(ctx, d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	save := func(name, proxy string) {
		t.Helper()
		_, fault := trunks.Save(ctx, d.Pool, trunks.Trunk{OrgID: org, Name: name, Proxy: proxy})
		if fault == nil {
			fault = trunks.Ring(ctx, d.Pool)
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
	bell := &db.Bell{Pool: d.Pool}
	told := make(keeper)
	up := &trunks.Upkeep{Trunks: d.Pool, Keeper: told, Wake: bell.On(trunks.Bell), Every: time.Hour}
	var running sync.WaitGroup
	if level := up.Attest("+12025550100"); level != "" {
		t.Errorf("attested %s before anything was read", level)
	}
	running.Go(func() { bell.Run(ctx) })
	running.Go(func() { up.Run(ctx) })
	told.kept(t, "sip:a")
	if level := up.Attest("12025550100"); level != "B" {
		t.Errorf("attested %q, want B", level)
	}
	save("b", "sip:b")
	told.kept(t, "sip:a", "sip:b")
	if _, err := d.Pool.Exec(ctx, "DELETE FROM trunks WHERE name = 'a'"); err != nil {
		t.Fatal(err)
	}
	if err := trunks.Ring(ctx, d.Pool); err != nil {
		t.Fatal(err)
	}
	told.kept(t, "sip:b")
	quit()
	over := make(chan struct{})
	go func() { running.Wait(); close(over) }()
	for {
		select {
		case <-told: // one that was on its way
			continue
		case <-over:
		case <-time.After(5 * time.Second):
			t.Fatal("it does not stop")
		}
		break
	}
}

// TestUpkeepOutlastsTheDatabase: what cannot be read is looked after as before.
func TestUpkeepOutlastsTheDatabase(t *testing.T) {
	d := dbtest.New(t)
	ctx, quit := context.WithCancel(t.Context())
	defer quit()
	d.Pool.Close()
	told := make(keeper, 1)
	wake := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		(&trunks.Upkeep{Trunks: d.Pool, Keeper: told, Wake: wake, Every: time.Hour}).Run(ctx)
	})
	wake <- struct{}{} // taken after the first look
	quit()
	running.Wait()
	if len(told) > 0 {
		t.Errorf("kept %v of a database that is away", <-told)
	}
}
