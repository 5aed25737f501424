package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// hooks collects the webhooks that arrive.
type hooks struct {
	down atomic.Bool // webhooks are refused

	mu   sync.Mutex
	seen map[[2]string]map[string]bool // their IDs, by type and call
}

// ServeHTTP accepts a webhook with a valid signature.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
	}
	if h.down.Load() || err != nil || json.Unmarshal(body, &m) != nil || !demo.SignedBy(demo.Secret, r.Header, body) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := [2]string{m.Type, m.CallID}
	if h.seen == nil {
		h.seen = map[[2]string]map[string]bool{}
	}
	if h.seen[key] == nil {
		h.seen[key] = map[string]bool{}
	}
	h.seen[key][r.Header.Get("Webhook-Id")] = true
	w.WriteHeader(http.StatusNoContent)
}

// calls returns the number of calls that have a webhook of a type.
func (h *hooks) calls(kind string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.seen {
		if k[0] == kind {
			n++
		}
	}
	return n
}

// TestPooledNodes runs two nodes through Debian's PgBouncer in transaction mode, which restarts during the calls. Calls
// last longer than leases. No number may be called twice, no call may end, all webhooks arrive, one node at a time has
// the exclusive duty, and the other takes it over.
func TestPooledNodes(t *testing.T) {
	t.Parallel()
	const singles, contacts, talk = 6, 20, 5 * time.Second
	pooler := dbtest.NewPooler(dbtest.NewPair(t))
	var invites inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: invites.accept(talk)})
	change := func(c *config.Config) { c.DatabaseURL, c.Lease = media.Secret(pooler.URL()), 3*time.Second }
	received := &hooks{}
	receiver := httptest.NewServer(received)
	t.Cleanup(receiver.Close)
	first, api := startServer(t, c.Addr().String(), change)
	if _, err := first.db.Pool.Exec(t.Context(), "UPDATE webhook_endpoints SET url = $1", receiver.URL); err != nil {
		t.Fatal(err)
	}
	first.allowAnyHour(t)
	if _, err := first.db.Pool.Exec(t.Context(), "UPDATE subgroups SET concurrent_calls = 500"); err != nil {
		t.Fatal(err)
	}
	settings := testConfig(t)
	change(&settings)
	second := runServer(t, settings, slog.New(slog.DiscardHandler))
	began := time.Now()
	for n := range singles {
		url := []string{first.publicURL, second.publicURL}[n%2]
		if status, text := orderCall(t, url, api.Key, fmt.Sprintf("+1202555%04d", n), fmt.Sprintf("order-%d", n)); status != http.StatusAccepted {
			t.Fatal(status, text)
		}
	}
	campaign(t, api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	eventuallyWithin(t, 30*time.Second, "calls are active", func() bool { return invites.total() >= singles+2 })
	t.Logf("%d calls were dialed within %v of the first order", invites.total(), time.Since(began).Round(time.Millisecond))
	pooler.Stop()
	<-time.After(time.Second)
	pooler.Start()
	const all = singles + contacts
	done := func(what string, want int, sql string) {
		t.Helper()
		eventuallyWithin(t, time.Minute, what, func() bool {
			var n int
			return first.db.Pool.QueryRow(t.Context(), sql).Scan(&n) == nil && n == want
		})
	}
	done("all calls were ended by the callee", all, "SELECT count(*) FROM calls WHERE status = 'ended' AND disconnection_reason = 'callee_hangup'")
	done("the campaign is complete", contacts, "SELECT count(*) FROM contacts WHERE state = 'done'")
	eventuallyWithin(t, time.Minute, "all webhooks arrived", func() bool {
		return received.calls("call_ended") == all && received.calls("call_analyzed") == all
	})
	for number, n := range invites.numbers() {
		if n > 1 {
			t.Errorf("%s was called %d times", number, n)
		}
	}
	duty := func() (owner string) {
		eventually(t, "a node has the duty", func() bool {
			return second.db.Pool.QueryRow(t.Context(), "SELECT owner FROM duties WHERE name = 'routes' AND until > now()").Scan(&owner) == nil
		})
		return owner
	}
	had := duty()
	for _, srv := range []*server{first, second} {
		if is, err := srv.routeHealth.Step(t.Context()); err != nil || is != (srv.node.ID.Owner == had) {
			t.Errorf("a node has the duty: %t, %v; its owner is %s", is, err, had)
		}
	}
	loser, left := first, second
	if had == second.node.ID.Owner {
		loser, left = second, first
	}
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	loser.stop(short)
	eventually(t, "the other node takes the duty over", func() bool {
		var owner string
		err := left.db.Pool.QueryRow(t.Context(), "SELECT owner FROM duties WHERE name = 'routes' AND until > now()").Scan(&owner)
		return err == nil && owner == left.node.ID.Owner
	})
}

// TestSoakPooledFailover is TestFailover with PgBouncer between the nodes and the database.
func TestSoakPooledFailover(t *testing.T) {
	soakOnly(t)
	newSwitchover(t, true).run(12, 3, 3)
}
