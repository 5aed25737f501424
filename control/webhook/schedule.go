package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryDelays are the pauses between two attempts.
var retryDelays = []time.Duration{ //nolint:gochecknoglobals // read-only table
	0, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// RetryDelay returns the pause after failed attempt n, counted from 1. The result is false if attempt n was the last.
// dice, from 0 to 1, varies the pause by up to ±20%.
func RetryDelay(n int, dice float64) (time.Duration, bool) {
	if n < 0 || n >= len(retryDelays) {
		return 0, false
	}
	return time.Duration(float64(retryDelays[n]) * (0.8 + 0.4*dice)), true
}

// maxRetryAfter is the longest Retry-After that is honored.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns the delay in the Retry-After header, which is a number of seconds or a date (RFC 9110 section
// 10.2.3). It returns 0 if the header is missing or invalid, and at most maxRetryAfter.
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

// verdict is the consequence of an attempt.
type verdict struct {
	delivered bool
	gone      bool          // the endpoint asked for no more deliveries
	dead      bool          // the delivery is not tried again
	wait      time.Duration // time until the next attempt
	throttle  time.Duration // time in which the endpoint gets no deliveries at all
}

// state returns the state of the delivery after the attempt, one of States.
func (v verdict) state() string {
	switch {
	case v.delivered:
		return "delivered"
	case v.dead:
		return "dead"
	}
	return "pending"
}

// judge returns the verdict on attempt n, counted from 1. A status of 0 means that there was no response. asked is the
// pause that the endpoint requested.
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
