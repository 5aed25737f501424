package db_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestPooler opens a database through PgBouncer: several processes migrate the schema at the same time, transactions have
// the timeout of a direct connection, and statements of many connections share few sessions.
func TestPooler(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t)
	bouncer := dbtest.NewPooler(pair)
	var all [3]*db.DB
	var opening sync.WaitGroup
	for n := range all {
		opening.Go(func() {
			d, err := db.Open(t.Context(), db.Config{URL: bouncer.URL(), MaxConns: 12})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(d.Close)
			all[n] = d
		})
	}
	if opening.Wait(); t.Failed() {
		return
	}
	d := all[0]
	if d.ListenPool != nil {
		t.Error("a pooler is used for notifications")
	}
	if n := dbtest.Value[int](t, d, "SELECT count(*) - count(DISTINCT version_id) FROM goose_db_version WHERE is_applied"); n != 0 {
		t.Errorf("%d migrations were applied twice", n)
	}
	err := db.Tx(t.Context(), d.Pool, func(tx pgx.Tx) error {
		var limit, jit string
		err := tx.QueryRow(t.Context(), "SELECT current_setting('statement_timeout'), current_setting('jit')").Scan(&limit, &jit)
		if limit != "30s" || jit != "off" {
			t.Errorf("statement_timeout is %s, jit is %s", limit, jit)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var working sync.WaitGroup
	var failed atomic.Int64
	for n := range 60 {
		working.Go(func() {
			for i := range 50 {
				var sum int
				batch := &pgx.Batch{}
				batch.Queue("SELECT $1::int + 1", i)
				batch.Queue("SELECT $1::text", strings.Repeat("x", i))
				if d.Pool.QueryRow(t.Context(), "SELECT $1::int + $2::int", n, i).Scan(&sum) != nil || sum != n+i ||
					d.DialPool.SendBatch(t.Context(), batch).Close() != nil {
					failed.Add(1)
				}
			}
		})
	}
	if working.Wait(); failed.Load() > 0 {
		t.Errorf("%d statements failed", failed.Load())
	}
	bouncer.Stop()
	if err := d.Writable(t.Context()); err == nil || !db.IsUnavailable(err) {
		t.Errorf("without a pooler: %v", err)
	}
	bouncer.Start()
	for began := time.Now(); d.Writable(t.Context()) != nil; {
		if time.Since(began) > 5*time.Second {
			t.Fatal("the pool does not recover after a restart of the pooler")
		}
	}
}

// TestDirectURL receives notifications past a pooler. The direct URL must not lead through a pooler.
func TestDirectURL(t *testing.T) {
	t.Parallel()
	pair := dbtest.NewPair(t)
	bouncer := dbtest.NewPooler(pair)
	d, err := db.Open(t.Context(), db.Config{URL: bouncer.URL(), DirectURL: pair.DirectURL(0), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	b := &db.Listener{Pool: d.ListenPool}
	woken := b.Subscribe("parley_test")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	for _, what := range []string{"the listener connects", "a notification arrives"} {
		select {
		case <-woken:
		case <-time.After(5 * time.Second):
			t.Fatal("timed out: " + what)
		}
		dbtest.Exec(t, d, "SELECT pg_notify($1, '')", "parley_test")
	}
	if _, err = db.Open(t.Context(), db.Config{URL: bouncer.URL(), DirectURL: bouncer.URL()}); err == nil || !strings.Contains(err.Error(), "accepted: the address of Postgres itself") {
		t.Errorf("a direct URL through the pooler: %v", err)
	}
}
