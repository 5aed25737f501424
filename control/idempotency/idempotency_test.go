package idempotency_test

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/idempotency"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestKeepAlive checks that a key is renewed while its request runs, and not afterwards.
func TestKeepAlive(t *testing.T) {
	d := dbtest.New(t)
	keys := &idempotency.Keys{Pool: d.Pool, Abandoned: 100 * time.Millisecond}
	slot, _, err := keys.Begin(t.Context(), "of", "a", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	stop := keys.KeepAlive(t.Context(), slot)
	wait := func() { // time passes on the database's clock
		dbtest.Exec(t, d, "SELECT pg_sleep(0.3)")
	}
	wait()
	if other, _, err := keys.Begin(t.Context(), "of", "a", []byte("x")); control.CodeOf(err) != control.CodeIdempotencyInFlight {
		t.Errorf("another has it: %v, %v", other, err)
	}
	stop()
	wait()
	if _, _, err := keys.Begin(t.Context(), "of", "a", []byte("x")); err != nil {
		t.Errorf("the key is held after its lease ended: %v", err)
	}
}
