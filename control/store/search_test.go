package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestIdleClaim checks that a claim is one statement after a claim that found an empty queue, and claims the next call.
func TestIdleClaim(t *testing.T) {
	b := newFixture(t, 100, 1<<20, "a")
	pool, statements := dbtest.Traced(t, b.db)
	b.store.Pool = pool
	b.claimAll()
	statements()
	b.claimAll()
	if all := statements(); len(all) == 0 || strings.Contains(strings.Join(all, ";"), "begin") {
		t.Errorf("statements %q", all)
	}
	if _, err := pool.Exec(t.Context(), "SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Claim(t.Context(), control.NodeID{Owner: "n"}, time.Minute, 1); err == nil {
		t.Error("a server that became read-only is not noticed")
	}
	b.store.Pool = b.db.Pool
	b.order("a", 2)
	if n := b.claimAll(); n != 2 {
		t.Errorf("claimed %d calls, want 2", n)
	}
}

// TestQueueSearch checks when a search begins at the oldest attempt, and that an older attempt is found later.
func TestQueueSearch(t *testing.T) {
	b := newFixture(t, 100, 1<<20, "a", "b")
	b.order("a", 2)
	b.order("b", 1)
	for _, tt := range []struct {
		took, low, high time.Duration
	}{
		{9 * time.Millisecond, -time.Hour, 0},
		{20 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond},
		{time.Minute, time.Second, 1200 * time.Millisecond},
	} {
		b.store.ResetSearch()
		from, last := b.store.FindStart(t.Context(), tt.took)
		if last > tt.high || last < tt.low && last > -time.Hour {
			t.Errorf("after a search of %v the beginning is used for %v, want %v to %v", tt.took, last, tt.low, tt.high)
		}
		oldest := dbtest.Value[time.Time](t, b.db, "SELECT min(created_at) FROM attempts")
		if want := oldest.Add(-2 * time.Second); !from.IsZero() && !from.Equal(want) || from.IsZero() != (last < 0) {
			t.Errorf("after a search of %v the queue begins at %v, want %v", tt.took, from, want)
		}
	}
	b.exec("UPDATE attempts SET created_at = created_at - interval '1 minute' WHERE subgroup_id = $1", b.route["b"])
	if n := b.claimAll(); n != 2 {
		t.Errorf("claimed %d calls, want the two that the search reads", n)
	}
	if wait, err := b.store.Due(t.Context(), time.Minute); wait != time.Minute || err != nil {
		t.Errorf("the next call is due in %v: %v", wait, err)
	}
	b.store.ResetSearch()
	if n := b.claimAll(); n != 1 {
		t.Errorf("claimed %d calls, want the older one", n)
	}
}
