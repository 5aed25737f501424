package failover

import (
	"slices"
	"testing"
)

// TestRestore checks after which returns to an earlier state older calls are held until an operator releases them. Each
// case begins with a queued call and ends with a new process of the node.
func TestRestore(t *testing.T) {
	t.Parallel()
	const hourAgo = "UPDATE database_epochs SET seen_at = seen_at - interval '1 hour'"
	for _, c := range []struct {
		name    string
		do      func(r *fixture, a *Monitor)
		lost    bool // the data directory is lost
		held    bool
		missing bool // the node's old journal is waited for
	}{
		{name: "a restart", do: func(*fixture, *Monitor) {}},
		{name: "a restart without data directory", do: func(*fixture, *Monitor) {}, lost: true},
		{name: "a failover that lost seconds, all nodes restarted", do: func(r *fixture, _ *Monitor) { r.promote() }},
		{
			name: "a failover that lost seconds, the node lost its disk", do: func(r *fixture, _ *Monitor) { r.promote() },
			lost: true, held: true, missing: true,
		},
		{name: "an orderly move to another server", do: func(r *fixture, a *Monitor) {
			if err := a.Leave(r.Context()); err != nil {
				r.Error(err)
			}
			r.promote()
		}},
		{name: "an hour lost", do: func(r *fixture, _ *Monitor) { r.exec(hourAgo); r.promote() }, held: true},
		{name: "an hour lost on the same timeline", do: func(r *fixture, _ *Monitor) { r.exec(hourAgo) }, held: true},
		{name: "an hour lost, and the data directory", do: func(r *fixture, _ *Monitor) { r.exec(hourAgo); r.promote() }, lost: true, held: true, missing: true},
		{name: "an operator", do: func(r *fixture, _ *Monitor) {
			if err := Hold(r.Context(), r.db.Pool); err != nil {
				r.Error(err)
			}
		}, lost: true, held: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newFixture(t)
			dir := t.TempDir()
			a := r.node("a", dir)
			r.check(a)
			old := r.order("+12025550111")
			if err := a.Journal.Close(); err != nil {
				t.Fatal(err)
			}
			c.do(r, a)
			if c.lost {
				dir = t.TempDir()
			}
			b := r.node("a", dir)
			r.waitUntilOpen(b)
			h, err := ReadHolds(t.Context(), r.db.Pool)
			if err != nil || (h.Restored || h.ByOperator) != c.held || (len(h.Missing) > 0) != c.missing {
				t.Errorf("%+v, %v", h, err)
			}
			if c.missing && slices.Contains(h.Missing, b.names()[0]) {
				t.Errorf("the new journal vouches for the lost one: %v", h.Missing)
			}
			if c.held {
				later := r.order("+12025550112")
				if got := r.claim(b); got == nil || got.Call.ID != later.ID {
					t.Errorf("claimed %v, want the later order", got)
				}
				if r.check(b); r.claim(b) != nil {
					t.Error("a held call is dialed")
				}
				if released, err := Release(t.Context(), r.db.Pool, "me"); err != nil || !released {
					t.Errorf("released: %v, %v", released, err)
				}
			}
			if got := r.claim(b); got == nil || got.Call.ID != old.ID {
				t.Errorf("claimed %v, want the call that waited", got)
			}
		})
	}
}

// TestRestoreUnderRunningNode checks that a node whose database goes back an hour while it runs holds older calls.
func TestRestoreUnderRunningNode(t *testing.T) {
	r := newFixture(t)
	a := r.node("a", t.TempDir())
	r.check(a)
	r.order("+12025550111")
	r.exec("UPDATE database_epochs SET seen_at = seen_at - interval '1 hour'")
	if s := r.check(a); s.Open || s.Changes != 1 {
		t.Errorf("%+v", s)
	}
	r.waitUntilOpen(a)
	h, err := ReadHolds(t.Context(), r.db.Pool)
	if err != nil || !h.Restored || h.Calls != 1 || h.Since.Sub(h.Behind).Minutes() < 59 {
		t.Errorf("%+v, %v", h, err)
	}
	if r.claim(a) != nil {
		t.Error("a held call is dialed")
	}
}
