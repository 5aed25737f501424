package sip

import "github.com/parley-voice/parley/media"

// causeForStatus returns the cause for the final status of an outbound call.
// retryAfter reports a Retry-After header; canceled is why we canceled the call,
// or "".
func causeForStatus(status int, retryAfter bool, canceled media.Cause) media.Cause {
	if canceled == media.Canceled {
		return canceled
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
	if canceled != "" {
		return canceled
	}
	return media.RouteError
}
