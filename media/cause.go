package media

import "fmt"

// A Cause is the reason why a leg ended or was not established.
type Cause string

// Causes of legs that ended.
const (
	LocalHangup  Cause = "local"         // ended by Parley
	RemoteHangup Cause = "remote"        // ended by the remote party or its carrier
	MediaTimeout Cause = "media_timeout" // no media received for too long
	Failure      Cause = "failure"       // internal error
	Expired      Cause = "expired"       // session timer ran out (RFC 4028)
	Transferred  Cause = "transferred"   // the remote party was transferred
)

// Causes of legs that were not established.
const (
	NoAnswer      Cause = "no_answer"
	Busy          Cause = "busy"
	Declined      Cause = "declined"
	InvalidNumber Cause = "invalid_number"
	Blocked       Cause = "blocked"
	RouteError    Cause = "route_error"
	AuthFailed    Cause = "auth_failed"
	Congestion    Cause = "congestion"
	Canceled      Cause = "cancelled"
	Redirected    Cause = "redirect_refused"
)

// A DialError reports a leg that was not established.
type DialError struct {
	Cause  Cause
	Status int    // SIP status; 0 if none was received
	Reason string // the carrier's reason phrase without control characters
	Err    error  // internal error, or nil
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

// Unwrap returns the internal error.
func (e *DialError) Unwrap() error { return e.Err }
