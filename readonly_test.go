package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/bench/demo"
)

// setReadOnly makes the Postgres server of a database read-only, or writable again.
func setReadOnly(t *testing.T, pool *pgxpool.Pool, on bool) {
	t.Helper()
	for _, sql := range []string{fmt.Sprintf("ALTER SYSTEM SET default_transaction_read_only = %t", on), "SELECT pg_reload_conf()"} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadOnlyDatabase checks that a server with a read-only database is not ready. It refuses call requests as it does
// without a database.
func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	srv, api := startServer(t, "127.0.0.1:9") // nothing listens at this address
	status := func(path string) int { return status(t, srv.publicURL+path, "") }
	if got := status("/readyz"); got != http.StatusOK {
		t.Fatalf("ready: %d", got)
	}
	setReadOnly(t, srv.db.Pool, true)
	eventually(t, "the server is not ready", func() bool { return status("/readyz") == http.StatusServiceUnavailable })
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("healthy: %d", got)
	}
	for range 3 {
		var placed demo.Call
		err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": demo.Number}, &placed)
		if err == nil || !strings.Contains(err.Error(), "503 ") || !strings.Contains(err.Error(), `"voice_backend_unavailable"`) {
			t.Errorf("an order returns %v", err)
		}
	}
	setReadOnly(t, srv.db.Pool, false)
	eventually(t, "the server is ready again", func() bool { return status("/readyz") == http.StatusOK })
	requestCall(t, api, demo.Number)
}

// TestSoakReadOnly makes the database read-only for 40 s during a campaign and single calls. No call may be lost or
// ring twice, and every repeated request must be accepted.
func TestSoakReadOnly(t *testing.T) {
	soakOnly(t)
	s, over := newSoak(t, 0)
	s.allowCampaigns()
	cmd := s.serve()
	s.waitReady()
	r := &rollingRestart{soak: s, urls: [2]string{s.api.URL, s.api.URL}}
	const contacts = 120
	id := campaign(t, s.api, map[string]any{"calls_per_minute": 200}, many(contacts)...)
	ctx, enough := context.WithCancel(t.Context())
	var orders, again int
	var singles sync.WaitGroup
	singles.Go(func() { orders, again = r.order(ctx) })
	live := func() int { return s.count("SELECT count(*) FROM calls WHERE status IN ('ringing', 'ongoing')") }
	eventuallyWithin(t, time.Minute, "calls are active", func() bool { return live() >= 5 })
	setReadOnly(t, s.db.Pool, true)
	began, unready, on := time.Now(), 0, live()
	for ; time.Since(began) < 40*time.Second; <-time.After(500 * time.Millisecond) {
		if status(t, s.api.URL+"/readyz", "") == http.StatusServiceUnavailable {
			unready++
		}
	}
	setReadOnly(t, s.db.Pool, false)
	back := time.Now()
	s.waitReady()
	ready := time.Since(back)
	eventuallyWithin(t, 3*time.Minute, "no contact is left", func() bool {
		return s.count("SELECT count(*) FROM contacts WHERE state IN ('pending', 'in_call')") == 0
	})
	enough()
	singles.Wait()
	eventuallyWithin(t, 2*time.Minute, "all calls have ended", func() bool { return s.count("SELECT count(*) FROM calls WHERE status NOT IN ('ended', 'failed')") == 0 })
	eventuallyWithin(t, 2*time.Minute, "all webhooks were received", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.hooks) == s.count("SELECT count(*) FROM calls")
	})
	s.end(cmd)
	over()
	if unready < 70 {
		t.Errorf("the server was not ready %d times of 80", unready)
	}
	if n := s.count("SELECT count(*) FROM contacts WHERE attempts = 0"); n != 0 {
		t.Errorf("%d contacts of %d were not called", n, contacts)
	}
	t.Logf("campaign %s: %d active calls when the database became read-only; ready %v after it was writable; %d orders, %d repeats", id, on, ready, orders, again)
	r.check(orders)
}
