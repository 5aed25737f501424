package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestOpenMigrates(t *testing.T) {
	d := dbtest.New(t)
	var n int
	if err := d.Pool.QueryRow(t.Context(), "SELECT count(*) FROM calls").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), d.Pool); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestListenerNotifies(t *testing.T) {
	d := dbtest.New(t)
	b := &db.Listener{Pool: d.Pool}
	notified := b.Subscribe("parley_test")
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { b.Run(ctx); close(over) }()
	defer func() { cancel(); <-over }()

	await := func(what string) {
		t.Helper()
		select {
		case <-notified:
		case <-time.After(10 * time.Second):
			t.Fatal(what)
		}
	}
	await("no notified when the listening begins")
	if _, err := d.Pool.Exec(t.Context(), "NOTIFY parley_test"); err != nil {
		t.Fatal(err)
	}
	await("no notified after NOTIFY")

	// The listener reconnects after its connection breaks.
	if _, err := d.Pool.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'listen%' AND datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	await("no notified after the connection broke")
}
