package media

import "fmt"

// Cause is the reason why a leg ended or was not established.
type Cause string

// Causes of legs that ended.
const (
	LocalHangup  Cause = "local"         // ended by Parley
	RemoteHangup Cause = "remote"        // ended by the remote party or its carrier
	MediaTimeout Cause = "media_timeout" // no media arrived for too long
	Failure      Cause = "failure"       // internal error
	Expired      Cause = "expired"       // the session timer expired (RFC 4028)
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

// DialError says why a leg was not established.
type DialError struct {
	Cause  Cause
	Status int    // final SIP status; 0 if none was received
	Reason string // reason phrase of the carrier, without control characters
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
