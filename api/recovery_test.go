package api_test

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

// TestRecoverCallsOfLostNode loses nodes at different moments of a call. It checks that the next node dials only the
// call that was not dialed before.
func TestRecoverCallsOfLostNode(t *testing.T) {
	h := newEnv(t)
	ctx := t.Context()
	ids := map[control.AttemptState]string{}
	for _, at := range []control.AttemptState{control.Claimed, control.Intent, control.Rang, control.Answered} {
		ids[at] = h.place()
		all, err := h.store.Claim(ctx, control.NodeID{Owner: "dead", Home: "here"}, time.Millisecond, 1)
		if err != nil || len(all) != 1 || all[0].Call.ID != ids[at] {
			t.Fatalf("claim: %v %v", all, err)
		}
		c := all[0]
		steps := []control.AttemptState{control.Intent, control.Rang, control.Answered}
		for _, s := range steps {
			if at == control.Claimed {
				break
			}
			if s == control.Intent {
				err = h.store.Intent(ctx, c.Lease)
			} else {
				err = h.store.Mark(ctx, c.Lease, s, time.Now())
			}
			if err != nil {
				t.Fatal(err)
			}
			if s == at {
				break
			}
		}
		h.wait(15 * time.Millisecond) // spacing of the subgroup
	}
	far := &carrier{}
	h.startNode(far, conversation(twoLines), nil)
	for at, want := range map[control.AttemptState][2]string{
		control.Claimed: {"ended", "callee_hangup"}, control.Intent: {"failed", "unknown_after_restart"},
		control.Rang: {"failed", "unknown_after_restart"}, control.Answered: {"ended", "node_lost"},
	} {
		if c := h.await(ids[at], want[0]); c["disconnection_reason"] != want[1] {
			t.Errorf("%s: %v", at, c["disconnection_reason"])
		}
	}
	if n := len(far.targets()); n != 1 {
		t.Errorf("%d calls dialed", n)
	}
	var events, calls int
	if err := h.db.Pool.QueryRow(ctx, "SELECT count(*), count(DISTINCT call_id) FROM events").Scan(&events, &calls); err != nil || events != 4 || calls != 4 {
		t.Errorf("%d events of %d calls: %v", events, calls, err)
	}
}

// wait lets the database's clock advance.
func (h *env) wait(d time.Duration) {
	h.t.Helper()
	h.exec("SELECT pg_sleep($1)", d.Seconds())
}
