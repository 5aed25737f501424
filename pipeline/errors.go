package pipeline

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A RefusedError reports that a provider responded with an error.
type RefusedError struct {
	Status     int           // HTTP status
	Text       string        // the provider's message, safe to show; may be empty
	RetryAfter time.Duration // pause that the provider requested; 0 if it requested none
}

func (r *RefusedError) Error() string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)))
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

// ErrUnusable is wrapped by errors about well-formed responses with unusable content. The model or the prompt is at
// fault, not the provider.
var ErrUnusable = errors.New("unusable answer")

// Errors of an answer that the model ended early. The text before the end is valid.
var (
	ErrContentFilter = fmt.Errorf("%w: the provider's content filter ended it", ErrUnusable)
	ErrLength        = fmt.Errorf("%w: it reached the token limit", ErrUnusable)
)

// A RefusalError reports that the model declined to answer. Its text is the model's own and may
// be spoken.
type RefusalError struct{ Text string }

// Error omits the text, which may repeat words of the caller.
func (r *RefusalError) Error() string { return ErrUnusable.Error() + ": the model declined to answer" }

// Unwrap returns ErrUnusable.
func (r *RefusalError) Unwrap() error { return ErrUnusable }

// A TimeoutError reports that a time limit of this process has passed.
type TimeoutError string

// Error implements error.
func (e TimeoutError) Error() string { return string(e) }

// Timeout implements net.Error's method and returns true.
func (e TimeoutError) Timeout() bool { return true }

// maxRetryAfter is the maximum of RetryAfter. A longer request is shortened to it.
const maxRetryAfter = 5 * time.Minute

// NewRefusedError returns an error with the status and the requested pause of resp. It does not read or close the
// body. The pause is Retry-After in seconds (RFC 9110, section 10.2.3), or retry-after-ms in milliseconds, which
// OpenAI sends. A date in Retry-After is ignored.
func NewRefusedError(resp *http.Response, text string) *RefusedError {
	r := &RefusedError{Status: resp.StatusCode, Text: text}
	for name, unit := range map[string]time.Duration{"Retry-After": time.Second, "Retry-After-Ms": time.Millisecond} {
		if n, err := strconv.ParseFloat(resp.Header.Get(name), 64); err == nil && n > 0 {
			pause := min(time.Duration(min(n, float64(maxRetryAfter/unit))*float64(unit)), maxRetryAfter)
			if r.RetryAfter == 0 || unit == time.Millisecond { // retry-after-ms is more exact, so it wins
				r.RetryAfter = pause
			}
		}
	}
	return r
}
