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
	dbtest.Value[int](t, d, "SELECT count(*) FROM calls")
	if err := db.Migrate(t.Context(), d.Pool, nil); err != nil {
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
	await("no notification when listening begins")
	dbtest.Exec(t, d, "NOTIFY parley_test")
	await("no notification after NOTIFY")

	// The listener must reconnect after its connection was closed.
	dbtest.Exec(t, d, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'listen%' AND datname = current_database()")
	await("no notification after the connection broke")
}
