package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// TestRequestTimeout checks that requests to a locked database time out with 503.
func TestRequestTimeout(t *testing.T) {
	h := newEnv(t)
	h.api.Timeout, h.api.Calls.EndWait = 300*time.Millisecond, 100*time.Millisecond
	id := h.place()
	for _, table := range []string{"calls", "api_keys"} {
		tx, err := h.db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tx.Exec(t.Context(), "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		for _, r := range []struct{ method, path, body string }{
			{"GET", "/v1/calls", ""},
			{"GET", "/v1/calls/" + id, ""},
			{"POST", "/v1/calls/" + id + "/end", ""},
			{"POST", "/v1/calls/phone", body("")},
		} {
			began := time.Now()
			a := h.do(r.method, r.path, r.body, "Idempotency-Key", table)
			if a.status != http.StatusServiceUnavailable || a.code() != "voice_backend_unavailable" {
				t.Errorf("%s %s behind a lock on %s: %d %s", r.method, r.path, table, a.status, a.body)
			}
			checkEnvelope(t, a)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s %s took %v", r.method, r.path, took)
			}
		}
		if err = tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if a := h.do("GET", "/v1/calls", ""); a.status != http.StatusOK {
		t.Errorf("after the locks: %d %s", a.status, a.body)
	}
}

// TestEndExceedsRequestTimeout checks that the wait of an end request does not count toward the request timeout.
func TestEndExceedsRequestTimeout(t *testing.T) {
	h := newEnv(t)
	h.api.Timeout, h.api.Calls.EndWait = time.Second, 20*time.Second
	stopped, over := make(chan struct{}), make(chan struct{})
	h.startNode(&carrier{}, conversation(func(ctx context.Context, _ pipeline.SessionConfig) (pipeline.Outcome, error) {
		<-ctx.Done()
		close(stopped)
		<-over
		return pipeline.Outcome{Reason: pipeline.Stopped}, nil
	}), nil)
	id := h.place()
	h.await(id, "ongoing")
	go func() {
		<-stopped
		<-time.After(1500 * time.Millisecond)
		close(over)
	}()
	if a := h.do("POST", "/v1/calls/"+id+"/end", ""); a.status != http.StatusOK || a.json(t)["status"] != "ended" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
