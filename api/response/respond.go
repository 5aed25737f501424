// Package response writes JSON responses and the error envelope.
package response

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A Detail is the value of "error" in the body of an error response.
type Detail struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Status  int    `json:"status"`
	Message any    `json:"message"`
	// Blockers and Import are set only by errors that have them.
	Blockers any `json:"blockers,omitempty"`
	Import   any `json:"import,omitempty"`
}

// An Envelope is the body of every error.
type Envelope struct {
	Error Detail `json:"error"`
}

// An Issue is one invalid part of a request.
type Issue struct {
	Type  string `json:"type"`
	Loc   []any  `json:"loc"`
	Msg   string `json:"msg"`
	Input any    `json:"input"`
}

// An InvalidError is a request that does not match its schema. It answers 422 with at
// most MaxIssues issues.
type InvalidError struct{ Issues []Issue }

// Error implements error.
func (i *InvalidError) Error() string {
	if len(i.Issues) == 0 {
		return "invalid request"
	}
	return "invalid request: " + i.Issues[0].Msg
}

// A PlainError has a status and a message but no specific code.
type PlainError struct {
	Status  int
	Message string
}

// Error implements error.
func (p *PlainError) Error() string { return p.Message }

// A DetailedError adds members to the envelope of an error.
type DetailedError struct {
	Refusal          *control.Error
	Blockers, Import any
}

// Error implements error.
func (m *DetailedError) Error() string { return m.Refusal.Error() }

// Unwrap returns the error.
func (m *DetailedError) Unwrap() error { return m.Refusal }

// Plain returns the envelope of an error without a specific code.
func Plain(status int, message string) Envelope {
	return Envelope{Detail{Type: typeOf(status), Code: typeOf(status), Status: status, Message: message}}
}

// Error writes err as a response. Unexpected errors are logged and sent without their
// text.
func Error(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	var invalid *InvalidError
	var plain *PlainError
	var refusal *control.Error
	d := Detail{Status: http.StatusInternalServerError, Code: string(control.CodeInternal), Message: "internal error"}
	switch {
	case errors.As(err, &invalid):
		d = Detail{Status: http.StatusUnprocessableEntity, Code: string(control.CodeInvalidRequest), Message: bounded(invalid.Issues)}
	case errors.As(err, &plain):
		d = Plain(plain.Status, plain.Message).Error
	case errors.As(err, &refusal):
		d.Code, d.Message = string(refusal.Code), refusal.Message
		d.Status = statusOf(refusal.Code)
		if more, ok := errors.AsType[*DetailedError](err); ok {
			d.Blockers, d.Import = more.Blockers, more.Import
		}
		if refusal.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
		}
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		log.InfoContext(r.Context(), "client disconnected", "path", r.URL.Path)
	case db.IsUnavailable(err), errors.Is(r.Context().Err(), context.DeadlineExceeded):
		log.ErrorContext(r.Context(), "database unavailable", "path", r.URL.Path, "err", err)
		d = Detail{
			Status:  http.StatusServiceUnavailable,
			Code:    string(control.CodeVoiceBackend),
			Message: "the database is unavailable or read-only; retry later",
		}
	default:
		log.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	d.Type = typeOf(d.Status)
	JSON(w, d.Status, Envelope{d})
}

// JSON writes v.
func JSON(w http.ResponseWriter, status int, v any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // nosniff and the content type keep browsers from reading the response as HTML
	err := e.Encode(v)
	body := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if err != nil { // responses can always be encoded
		status, body = http.StatusInternalServerError, []byte(
			`{"error":{"type":"api_error","code":"internal_error","status":500,"message":"internal error"}}`,
		)
	}
	Bytes(w, status, body)
}

// Bytes writes encoded JSON.
func Bytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have left
}

// Unix formats a time for rate limit headers.
func Unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
