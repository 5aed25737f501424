package response

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-voice/parley/control"
)

func TestError(t *testing.T) {
	unreachable := &net.OpError{Op: "dial", Net: "unix", Err: errors.New("canary")}
	for _, tt := range []struct {
		err              error
		status           int
		typ, code, after string
	}{
		{control.Refuse(control.CodeCallNotFound, "x"), 404, "not_found_error", "call_not_found", ""},
		{fmt.Errorf("wrapped: %w", control.Refuse(control.CodeAgentNotPublished, "x")), 409, "conflict_error", "agent_not_published", ""},
		{&control.Error{Code: control.CodeDialQueueFull, RetryAfter: 1500 * time.Millisecond}, 429, "rate_limit_error", "dial_queue_full", "2"},
		{control.Refuse("unknown_code", "x"), 500, "api_error", "unknown_code", ""},
		{&InvalidError{Issues: []Issue{{Type: "missing", Loc: []any{"body"}}}}, 422, "invalid_request_error", "invalid_request", ""},
		{&PlainError{Status: 405, Message: "x"}, 405, "invalid_request_error", "invalid_request_error", ""},
		{&PlainError{Status: 404, Message: "x"}, 404, "not_found_error", "not_found_error", ""},
		{fmt.Errorf("read call: %w", unreachable), 503, "service_unavailable_error", "voice_backend_unavailable", ""},
		{fmt.Errorf("read call: %w", context.DeadlineExceeded), 503, "service_unavailable_error", "voice_backend_unavailable", ""},
		// the database shuts down
		{fmt.Errorf("read call: %w", &pgconn.PgError{Code: "57P01", Message: "canary"}), 503, "service_unavailable_error", "voice_backend_unavailable", ""},
		// too many connections
		{fmt.Errorf("read call: %w", &pgconn.PgError{Code: "53300", Message: "canary"}), 503, "service_unavailable_error", "voice_backend_unavailable", ""},
		// the database crashed
		{fmt.Errorf("read call: %w", io.ErrUnexpectedEOF), 503, "service_unavailable_error", "voice_backend_unavailable", ""},
		{fmt.Errorf("read call: %w", &pgconn.PgError{Code: "22P02", Message: "canary"}), 500, "api_error", "internal_error", ""},
		{errors.New("canary"), 500, "api_error", "internal_error", ""},
	} {
		w := httptest.NewRecorder()
		Error(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil), slog.New(slog.DiscardHandler), tt.err)
		var e Envelope
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if w.Code != tt.status || e.Error.Status != tt.status || e.Error.Type != tt.typ || e.Error.Code != tt.code || w.Header().Get("Retry-After") != tt.after {
			t.Errorf("%v: %d %s Retry-After %q", tt.err, w.Code, w.Body, w.Header().Get("Retry-After"))
		}
		if text, _ := e.Error.Message.(string); text == "canary" {
			t.Errorf("%v: the response contains the cause", tt.err)
		}
	}
}

// TestErrorAfterTheDeadline checks that an error after the request's deadline is reported as a timeout.
func TestErrorAfterTheDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	w := httptest.NewRecorder()
	Error(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil), slog.New(slog.DiscardHandler), errors.New("conn closed"))
	if w.Code != 503 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestTextIsReadable checks that error texts are not escaped for HTML.
func TestTextIsReadable(t *testing.T) {
	w := httptest.NewRecorder()
	JSON(w, http.StatusOK, map[string]string{"message": "wants a & b < c"})
	if got := w.Body.String(); got != `{"message":"wants a & b < c"}` || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s as %s", got, w.Header().Get("Content-Type"))
	}
}
