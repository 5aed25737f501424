package pgqueue

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// TestRouteBreaker checks that no call uses a route with an open breaker, except a due probe. If the route fails the
// probe, the probe does not count as an attempt of the contact.
func TestRouteBreaker(t *testing.T) {
	s := newEnv(t)
	s.addContacts(3, 1)
	s.exec("INSERT INTO route_breakers (subgroup_id, open, why, since, wait, probe_at) VALUES ($1, true, 'failures', now(), '10s', now() + interval '10 seconds')", s.route)
	s.wantTake(s.newDialer(), "")
	s.wantQuery("pending0true pending0true pending0true", "SELECT state || attempts || (due_at < now()) FROM contacts UNION ALL SELECT id FROM calls")
	s.exec("UPDATE route_breakers SET probe_at = now()")
	s.wantTake(s.newDialer(), "con_1")
	call := s.query("SELECT probe_call FROM route_breakers")
	if got := s.query("SELECT call_id FROM contact_attempts WHERE probe"); call == "" || got != call {
		t.Errorf("the probe is %q and %q", call, got)
	}
	s.resetPace()
	s.wantTake(s.newDialer(), "")
	d := &outcome.Recorder{Pool: s.db.Pool, Store: &store.Store{Pool: s.db.Pool}}
	err := db.Tx(t.Context(), s.db.Pool, func(tx pgx.Tx) error {
		_, err := d.Record(t.Context(), tx, outcome.Outcome{CallID: call, Result: retry.Failed, Ended: time.Now(), Unreached: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.wantQuery("pending0 pending0 pending0", "SELECT state || attempts FROM contacts ORDER BY n")
	s.exec("UPDATE route_breakers SET probe_call = ''")
	s.resetPace()
	s.wantTake(s.newDialer(), "con_2")
	s.exec("UPDATE route_breakers SET open = false, probe_call = ''")
	s.resetPace()
	s.wantTake(s.newDialer(), "con_3")
}

// TestUnreachableTrunk checks that a node that cannot reach a trunk leaves its calls to other nodes. If no node
// reaches the trunk, any node may probe it.
func TestUnreachableTrunk(t *testing.T) {
	s := newEnv(t)
	s.addContacts(1, 1)
	b := s.queue("node")
	b.Unreachable = func(trunk string) bool { return trunk == s.query("SELECT id FROM trunks") }
	d := &dialer.Dialer{Store: b}
	s.wantTake(d, "")
	s.exec("INSERT INTO route_breakers (subgroup_id, open, why, since, wait, probe_at) VALUES ($1, true, 'unreachable', now(), '10s', now())", s.route)
	s.wantTake(d, "con_1")
}

// TestOneProbe checks that if two campaigns could probe a route at the same time, only one call becomes the probe.
func TestOneProbe(t *testing.T) {
	s := newEnv(t)
	s.addContacts(2, 1)
	s.exec("INSERT INTO route_breakers (subgroup_id, open, why, since, wait, probe_at) VALUES ($1, true, 'failures', now(), '10s', now())", s.route)
	b := s.queue("node")
	if _, _, err := b.Running(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantTake(s.newDialer(), "con_1")
	err := db.Tx(t.Context(), s.db.Pool, func(tx pgx.Tx) error {
		return b.probeRoute(t.Context(), tx, b.details["cmp_1"], s.query("SELECT probe_call FROM route_breakers"))
	})
	if !errors.Is(err, errCampaignChanged) {
		t.Errorf("a second probe: %v", err)
	}
}
