package media

import (
	"errors"
	"fmt"
	"time"
)

// A Line is the connection that a leg holds to its party.
type Line interface {
	// Hangup ends the leg: its reader gets io.EOF and its feed is asked no
	// more. Only the first call counts; any number is harmless.
	Hangup(Cause) error
	// Cause says why the leg ended, or "" while it lives.
	Cause() Cause
}

// A Leg is one party on the line, alive from the moment one holds it. It has
// one sample rate for life; a leg whose wire speaks another resamples inside.
//
// Leaving the leg is pulled, not pushed: the leg asks its feed for each frame
// at the moment that frame is due, so nothing waits in a queue between the
// feed and the wire, and a feed that falls silent is silent on the wire within
// one frame.
type Leg interface {
	Source
	Line
	// Play makes feed what the party hears from the next frame on. A leg
	// without a feed sends silence.
	Play(feed Feed)
	// Digits yields the keys the party presses. It is closed when the leg ends.
	Digits() <-chan rune
}

// An Arrival tells when what a leg last read came in. Legs with a network
// behind them implement it.
type Arrival interface {
	// Arrived returns when the packet that holds the last read frame reached
	// this machine. It is false where the frame was concealed or silence was
	// put in its place. It belongs to the goroutine that calls ReadFrame.
	Arrived() (time.Time, bool)
}

// A Target says whom to reach, through whom, and how to appear to them.
type Target struct {
	// ID names the attempt; it is the stem of the Call-ID.
	ID string
	// To is what the carrier is asked to dial: digits, prefix included.
	To string
	// From is the caller number shown to the party, digits with or without +.
	From string
	// Trunk is the carrier.
	Trunk Trunk
	// RingFor is how long the party may ring; 0 means 45 s.
	RingFor time.Duration
	// Headers are added to the request that opens the line.
	Headers map[string]string
	// NotAfter is the moment after which the request must not leave any more;
	// zero for none. Whoever comes too late fails with ErrTooLate.
	NotAfter time.Time
}

// ErrTooLate is why a request did not leave: its Target's NotAfter had passed.
var ErrTooLate = errors.New("too late for the request to leave")

// A Trunk is a carrier that takes calls.
type Trunk struct {
	// Proxy is where requests go: "sip:host:port;transport=udp".
	Proxy string
	// Username and Password answer the carrier's challenges, where it has any.
	Username string
	Password Secret
	// Realm pins the realm whose challenges are answered; empty pins the
	// first one that the proxy itself sends.
	Realm string
}

// Progress is what a dialled party does before it answers.
type Progress string

// Progresses.
const (
	// Sent: the request is on its way and may ring the party from now on.
	Sent Progress = "sent"
	// Ringing: the party's phone rings (180, or 183).
	Ringing Progress = "ringing"
)

// A Cause is why a leg ended or never began.
type Cause string

// Causes of legs that ended.
const (
	LocalHangup  Cause = "local"         // we hung up
	RemoteHangup Cause = "remote"        // the party or its carrier hung up
	MediaTimeout Cause = "media_timeout" // nothing was heard of the party for too long
	Failure      Cause = "failure"       // the leg broke on our side
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

// A Secret is a string that never prints.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "[secret]" }

// MarshalText keeps a secret out of JSON, YAML and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }
