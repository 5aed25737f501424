package store_test

import (
	"testing"
	"time"
)

// TestClaimLeavesPausedTrunks checks that a node claims no calls of the trunks in its PausedTrunks, and that another
// node may claim them.
func TestClaimLeavesPausedTrunks(t *testing.T) {
	b := newFixture(t, 10, 1<<20, "a")
	id := b.order("a", 1)[0]
	b.store.PausedTrunks = func() []string { return []string{"trk_other", b.trunk} }
	if c := b.claim("n1"); c != nil {
		t.Fatalf("claimed %s for a paused trunk", c.Call.ID)
	}
	b.exec("UPDATE trunks SET calls_per_second = 1, next_dial_at = now() + interval '100 ms'")
	if wait, err := b.store.Due(t.Context(), time.Second); err != nil || wait != time.Second {
		t.Errorf("a call of a paused trunk is due in %v: %v", wait, err)
	}
	b.exec("UPDATE trunks SET calls_per_second = 0, next_dial_at = now()")
	b.store.PausedTrunks = func() []string { return nil } // simulates another node, for which no trunk is paused
	if c := b.claim("n2"); c == nil || c.Call.ID != id {
		t.Error("another node claims nothing")
	}
}
