package media

import "fmt"

// A Cause is why a leg ended or never began.
type Cause string

// Causes of legs that ended.
const (
	LocalHangup  Cause = "local"         // we hung up
	RemoteHangup Cause = "remote"        // the party or its carrier hung up
	MediaTimeout Cause = "media_timeout" // nothing was heard of the party for too long
	Failure      Cause = "failure"       // the leg broke on our side
	Expired      Cause = "expired"       // the session was not refreshed in time (RFC 4028)
	Transferred  Cause = "transferred"   // the party was handed over
)

// Causes of legs that never began.
const (
	NoAnswer      Cause = "no_answer"
	Busy          Cause = "busy"
	Declined      Cause = "declined"
	InvalidNumber Cause = "invalid_number"
	Blocked       Cause = "blocked"
	RouteError    Cause = "route_error"
	AuthFailed    Cause = "auth_failed"
	Congestion    Cause = "congestion"
	Cancelled     Cause = "cancelled"
	Redirected    Cause = "redirect_refused"
)

// A DialError is why a leg never began.
type DialError struct {
	Cause  Cause
	Status int    // SIP status, 0 where none came
	Reason string // the carrier's reason phrase, cleaned of control characters
	Err    error  // what went wrong on our side, where it did
	Ladder []Message
}

// Error implements error.
func (e *DialError) Error() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("dial: %s (%d %s)", e.Cause, e.Status, e.Reason)
	case e.Err != nil:
		return fmt.Sprintf("dial: %s: %v", e.Cause, e.Err)
	default:
		return "dial: " + string(e.Cause)
	}
}

// Unwrap returns what went wrong on our side.
func (e *DialError) Unwrap() error { return e.Err }
