package pipeline

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A RefusedError is the error of a provider that answered, and not with what it was
// asked for.
type RefusedError struct {
	Status     int           // of HTTP
	Text       string        // what it said, fit to be shown; may be empty
	RetryAfter time.Duration // how long it asks to be left alone; 0 where it does not tell
}

func (r *RefusedError) Error() string {
	status := fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
	if r.Text == "" {
		return status
	}
	return status + ": " + r.Text
}

// OfAsker tells whether the fault is with what was asked for, a model or a voice
// that there is not or a text too long, and not with the provider or the account.
func (r *RefusedError) OfAsker() bool {
	switch r.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return r.Status >= 400 && r.Status < 500
}

// ErrUseless is in the errors of answers that came as they should and make no
// sense: the fault is the model's or the question's, not the provider's.
var ErrUseless = errors.New("the answer is of no use")

// longestRetry bounds what is believed of a provider's Retry-After.
const longestRetry = 5 * time.Minute

// NewRefusedError reads the status and the Retry-After of an answer (RFC 9110,
// section 10.2.3), whose body it leaves alone. A date is not read.
func NewRefusedError(resp *http.Response, text string) *RefusedError {
	r := &RefusedError{Status: resp.StatusCode, Text: text}
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && s > 0 {
		r.RetryAfter = min(time.Duration(min(s, longestRetry.Seconds())*float64(time.Second)), longestRetry)
	}
	return r
}
