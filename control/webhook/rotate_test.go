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

// TestANewSecretSignsAtOnce: also the rest of what an endpoint is being told when
// its secret is changed.
func TestANewSecretSignsAtOnce(t *testing.T) {
	p := newPost(t)
	const fresh media.Secret = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
	var signatures []int
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		signatures = append(signatures, len(strings.Fields(r.Header.Get("Webhook-Signature"))))
		if len(signatures) == 1 {
			p.exec("UPDATE webhook_endpoints SET previous_secret = secret, secret = $1", fresh)
		}
	}))
	t.Cleanup(far.Close)
	p.sender.Beside = 1
	p.endpoints(far.URL)
	p.ended(2)
	p.pass(time.Second)
	if len(signatures) != 2 || signatures[0] != 1 || signatures[1] != 2 {
		t.Errorf("signatures of the notices: %v", signatures)
	}
}

// TestReplayedWhileItIsTold: who replays an endpoint's notices, or removes it, while
// what became of one is written down, waits for that and never in a circle.
func TestReplayedWhileItIsTold(t *testing.T) {
	p := newPost(t)
	tx, err := p.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	locked := make(chan error, 1)
	far := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		_, fault := tx.Exec(t.Context(), "SELECT FROM webhook_endpoints FOR UPDATE")
		locked <- fault
	}))
	t.Cleanup(far.Close)
	p.endpoints(far.URL)
	p.ended(1)
	done := make(chan error, 1)
	go func() { done <- p.sender.Pass(t.Context()) }()
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
		t.Errorf("the notice is %s", state)
	}
}
