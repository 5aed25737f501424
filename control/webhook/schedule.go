package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryDelays are the pauses between attempts.
var retryDelays = []time.Duration{ //nolint:gochecknoglobals // read-only table
	0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// RetryDelay returns the wait after the n-th failed attempt, from 1, or false if it was the last. Dice, from 0 to 1,
// spreads the wait by ±20 %.
func RetryDelay(n int, dice float64) (time.Duration, bool) {
	if n < 0 || n >= len(retryDelays) {
		return 0, false
	}
	return time.Duration(float64(retryDelays[n]) * (0.8 + 0.4*dice)), true
}

// maxRetryAfter bounds Retry-After.
const maxRetryAfter = 24 * time.Hour

// retryAfter parses both forms of the header (RFC 9110 10.2.3); 0 if it is missing or invalid.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	var wait time.Duration
	if s, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(max(s, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// A verdict is the decision after an attempt.
type verdict struct {
	delivered bool
	gone      bool          // the endpoint asks for no more deliveries
	dead      bool          // no further attempt
	wait      time.Duration // until the next attempt
	throttle  time.Duration // of the whole endpoint
}

// judge decides after the n-th attempt, from 1. Status 0 means no response.
func judge(n, status int, asked time.Duration, dice float64) verdict {
	switch {
	case status >= 200 && status <= 299:
		return verdict{delivered: true}
	case status == http.StatusGone:
		return verdict{gone: true, dead: true}
	}
	wait, more := RetryDelay(n, dice)
	v := verdict{dead: !more, wait: max(wait, asked), throttle: asked}
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		v.throttle = max(asked, 5*time.Second)
	}
	return v
}
