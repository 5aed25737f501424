package parley

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Types of errors. Classify by Type and Status; Code names the specific cause. New codes may be added.
const (
	InvalidRequestError     = "invalid_request_error"
	AuthenticationError     = "authentication_error"
	PermissionError         = "permission_error"
	NotFoundError           = "not_found_error"
	ConflictError           = "conflict_error"
	RateLimitError          = "rate_limit_error"
	ServiceUnavailableError = "service_unavailable_error"
	APIError                = "api_error"
)

// An Error is the response to a request that failed.
type Error struct {
	Status int
	Type   string
	Code   string
	// Message is text for people. It is not part of the contract.
	Message string
	// Issues say what is wrong with the request, if Code is invalid_request.
	Issues []Issue
	// Blockers say why a campaign cannot be launched, if Code is launch_blocked.
	Blockers []Blocker
	// Import is the report of a batch that was refused.
	Import *Import
	// RetryAfter is how long the server asks to wait; 0 if it does not say.
	RetryAfter time.Duration
	// RequestID identifies the request in the log of the server.
	RequestID string
}

// An Issue is one reason why a request does not fit its schema.
type Issue struct {
	Type  string `json:"type"`
	Loc   []any  `json:"loc"` // path of the value, such as "body", "planned_calls", 3
	Msg   string `json:"msg"`
	Input any    `json:"input"`
}

// Error implements error.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "parley: %d %s", e.Status, e.Code)
	if e.Message != "" {
		fmt.Fprintf(&text, ": %s", e.Message)
	}
	for _, i := range e.Issues {
		loc := make([]string, len(i.Loc))
		for n, part := range i.Loc {
			loc[n] = fmt.Sprint(part)
		}
		fmt.Fprintf(&text, "; %s: %s", strings.Join(loc, "."), i.Msg)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&text, " (request %s)", e.RequestID)
	}
	return text.String()
}

func newError(resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode, Type: APIError, Code: APIError, RequestID: resp.Header.Get("X-Request-Id")}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	var envelope struct {
		Error *struct {
			Type     string          `json:"type"`
			Code     string          `json:"code"`
			Message  json.RawMessage `json:"message"`
			Blockers []Blocker       `json:"blockers"`
			Import   *Import         `json:"import"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error == nil { // the response of a proxy
		e.Message = http.StatusText(resp.StatusCode)
		return e
	}
	got := envelope.Error
	e.Type, e.Code, e.Blockers, e.Import = got.Type, got.Code, got.Blockers, got.Import
	if json.Unmarshal(got.Message, &e.Message) != nil {
		_ = json.Unmarshal(got.Message, &e.Issues) // an unknown form has no issues
	}
	return e
}

// delay returns whether to repeat a request after an error, and how long to wait before.
func (r request) delay(err error, attempt int) (time.Duration, bool) {
	most := min(500*time.Millisecond<<(attempt-1), 8*time.Second)
	backoff := 100*time.Millisecond + time.Duration(rand.Int64N(int64(most))) //nolint:gosec // the wait is no secret
	var e *Error
	if !errors.As(err, &e) {
		return backoff, r.safe // the connection failed
	}
	backoff = max(backoff, e.RetryAfter)
	switch e.Status {
	case http.StatusTooManyRequests: // without Retry-After, the limit depends on calls that end
		return e.RetryAfter, e.RetryAfter > 0
	case http.StatusConflict:
		return backoff, e.Code == "idempotency_key_in_flight"
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return backoff, r.safe && e.Code != "contact_file_storage_unavailable" // that campaign exists as a draft
	}
	return 0, false
}
