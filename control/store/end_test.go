package store_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

// TestEndAll ends the calls of one organization: it cancels queued ones, and requests the end of the others.
func TestEndAll(t *testing.T) {
	b := newFixture(t, 10, 60, "sales")
	ids := b.order("sales", 5)
	talking, ringing := b.claim("node_1"), b.claim("node_1")
	for _, c := range []*control.Claim{talking, ringing} {
		b.advance(c, control.Rang)
	}
	b.exec("UPDATE calls SET status = 'ongoing' WHERE id = $1", talking.Call.ID)
	b.exec("UPDATE calls SET status = 'ringing' WHERE id = $1", ringing.Call.ID)
	if n, err := store.EndAll(t.Context(), b.store, "org_other"); n != 0 || err != nil {
		t.Errorf("another organization ends %d calls: %v", n, err)
	}
	n, err := store.EndAll(t.Context(), b.store, b.org)
	if n != 5 || err != nil {
		t.Errorf("%d calls, want 5: %v", n, err)
	}
	for _, id := range ids {
		c := b.call(id)
		asked := dbtest.Value[bool](t, b.db, "SELECT end_requested_at IS NOT NULL FROM calls WHERE id = $1", id)
		active := id == talking.Call.ID || id == ringing.Call.ID
		if asked != active || c.Status.Over() == active || !active && c.Reason != control.ReasonCanceled {
			t.Errorf("%s is %s, %s; its end is requested: %v", id, c.Status, c.Reason, asked)
		}
	}
	if n, err = store.EndAll(t.Context(), b.store, b.org); n != 0 || err != nil {
		t.Errorf("the second time %d calls end: %v", n, err)
	}
}

// TestEndAllFailure checks that EndAll ends the other calls if the end of one fails, and returns the error.
func TestEndAllFailure(t *testing.T) {
	b := newFixture(t, 10, 60, "sales")
	ids := b.order("sales", 3)
	b.exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$")
	b.exec("CREATE TRIGGER refuse BEFORE UPDATE ON calls FOR EACH ROW WHEN (OLD.id = '" + ids[0] + "') EXECUTE FUNCTION refuse()")
	if n, err := store.EndAll(t.Context(), b.store, b.org); n != 2 || err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%d calls ended: %v; want 2 and the error", n, err)
	}
	for i, id := range ids {
		if over := b.call(id).Status.Over(); over != (i > 0) {
			t.Errorf("call %d has ended: %v", i, over)
		}
	}
}
