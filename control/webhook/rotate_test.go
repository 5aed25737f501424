package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
)

// TestNewSecretSignsAtOnce checks that a drain that is already running signs its next deliveries with a new secret.
func TestNewSecretSignsAtOnce(t *testing.T) {
	p := newFixture(t)
	const fresh media.Secret = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
	var signatures []int
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		signatures = append(signatures, len(strings.Fields(r.Header.Get("Webhook-Signature"))))
		if len(signatures) == 1 {
			p.exec("UPDATE webhook_endpoints SET previous_secret = secret, secret = $1", fresh)
		}
	}))
	t.Cleanup(target.Close)
	p.sender.PerEndpoint = 1
	p.endpoints(target.URL)
	p.insertEnded(2)
	p.passTime(time.Second)
	if len(signatures) != 2 || signatures[0] != 1 || signatures[1] != 2 {
		t.Errorf("signatures: %v", signatures)
	}
}

// TestReplayDuringAttempt checks that Replay and Remove wait while the result of an attempt is recorded, and that no
// deadlock occurs.
func TestReplayDuringAttempt(t *testing.T) {
	p := newFixture(t)
	tx, err := p.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	locked := make(chan error, 1)
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		_, fault := tx.Exec(t.Context(), "SELECT FROM webhook_endpoints FOR UPDATE")
		locked <- fault
	}))
	t.Cleanup(target.Close)
	p.endpoints(target.URL)
	p.insertEnded(1)
	done := make(chan error, 1)
	go func() { done <- p.sender.DeliverDue(t.Context()) }()
	if err = <-locked; err != nil {
		t.Fatal(err)
	}
	for p.value("SELECT count(*)::text FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())") == "0" {
		runtime.Gosched()
	}
	if _, err = tx.Exec(t.Context(), "UPDATE webhook_deliveries SET next_at = next_at"); err == nil {
		err = tx.Commit(t.Context())
	}
	if passed := <-done; err != nil || passed != nil {
		t.Fatal(err, passed)
	}
	if state := p.value("SELECT state FROM webhook_deliveries"); state != "delivered" {
		t.Errorf("the delivery is %s", state)
	}
}
