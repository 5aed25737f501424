package pipeline

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A RefusedError reports that a provider responded with an error.
type RefusedError struct {
	Status     int           // HTTP status
	Text       string        // message of the provider, safe to show; may be empty
	RetryAfter time.Duration // requested pause; 0 if unspecified
}

func (r *RefusedError) Error() string {
	status := fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
	if r.Text == "" {
		return status
	}
	return status + ": " + r.Text
}

// IsRequestFault reports whether the request is at fault, such as an unknown model or
// voice or a text that is too long, rather than the provider or the account.
func (r *RefusedError) IsRequestFault() bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return r.Status >= 400 && r.Status < 500
}

// ErrUnusable wraps errors of well-formed responses with unusable content. The model or
// the prompt is at fault, not the provider.
var ErrUnusable = errors.New("unusable answer")

// A TimeoutError reports that a time limit of this process has passed.
type TimeoutError string

// Error implements error.
func (e TimeoutError) Error() string { return string(e) }

// Timeout implements net.Error's method and returns true.
func (e TimeoutError) Timeout() bool { return true }

// maxRetryAfter bounds the Retry-After that is honored.
const maxRetryAfter = 5 * time.Minute

// NewRefusedError reads the status and the Retry-After seconds of a response (RFC 9110,
// section 10.2.3) and leaves its body. A date in Retry-After is ignored.
func NewRefusedError(resp *http.Response, text string) *RefusedError {
	r := &RefusedError{Status: resp.StatusCode, Text: text}
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && s > 0 {
		r.RetryAfter = min(time.Duration(min(s, maxRetryAfter.Seconds())*float64(time.Second)), maxRetryAfter)
	}
	return r
}
