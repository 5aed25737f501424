package sip

import "github.com/parley-voice/parley/media"

// cause says what a final status means for a call that we dialled. retryAfter
// is whether the answer said when to try again; gaveUp is why we cancelled the
// call before, or "" where we did not.
func cause(status int, retryAfter bool, gaveUp media.Cause) media.Cause {
	if gaveUp == media.Cancelled {
		return gaveUp
	}
	switch status {
	case 408, 480, 487:
		return media.NoAnswer
	case 486, 600:
		return media.Busy
	case 603, 607, 608:
		return media.Declined
	case 404, 410, 484, 604:
		return media.InvalidNumber
	case 403:
		return media.Blocked
	case 401, 407:
		return media.AuthFailed
	case 503:
		if retryAfter {
			return media.Congestion
		}
	}
	if status >= 300 && status < 400 {
		return media.Redirected
	}
	if gaveUp != "" {
		return gaveUp
	}
	return media.RouteError
}
