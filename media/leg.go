package media

import (
	"context"
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

// A Keypad presses keys that the party's side hears (RFC 4733). Legs that can
// press them implement it.
type Keypad interface {
	// Press sends keys of 0-9 * # and A-D, one after the other, in place of
	// what the feed says meanwhile. A comma is a pause of half a second. It
	// returns when the keys are accepted; they are sent on the media clock.
	Press(keys string) error
}

// A Gauge tells how well a leg's audio travels. Legs with a network behind
// them implement it.
type Gauge interface {
	// Quality may be asked at any time, also after the leg has ended.
	Quality() Quality
}

// Quality is how the audio of a leg travelled, both ways, so far.
type Quality struct {
	Codec string // encoding name of the last codec agreed on

	// Heard is what the party sent, as we received it.
	Sent, Heard Stretch
	RoundTrip   time.Duration // as of the last report (RFC 3550 section 6.4.1), 0 unknown
	Concealed   time.Duration // heard time that was made up because packets were missing
	Underruns   int64         // frames that were not sent in time
}

// A Stretch is one direction of a leg's audio on the wire.
type Stretch struct {
	Packets int64         // that arrived, as far as the hearing side told
	Lost    int64         // packets that never did
	Jitter  time.Duration // interarrival jitter (RFC 3550 section 6.4.1)
	MOS     float64       // estimated listening quality (ITU-T G.107), 1 to 4.5; 0 unknown
}

// A Message is one rung of a call's signalling ladder. Secrets are left out.
type Message struct {
	At   time.Time
	Out  bool   // we sent it
	Peer string // address and transport: "192.0.2.1:5060/UDP"
	Line string // the start line, numbers included
	Note string // what else tells, such as CSeq and the essence of the description
}

// A Traced leg tells the signalling that it lived by.
type Traced interface {
	// Ladder returns the messages, oldest first. After the end of the leg it
	// waits until the signalling is over too, or ctx ends.
	Ladder(ctx context.Context) []Message
}

// A Referrer hands its party over to somebody else (RFC 3515).
type Referrer interface {
	// Refer asks the party's side to call number instead of us. It returns nil
	// once the other has answered, and then the leg ends with Transferred. On
	// error the leg goes on.
	Refer(ctx context.Context, number string) error
}

// A Holder stops and resumes the party's audio (RFC 3264 section 8.4).
type Holder interface {
	// Hold puts the party on hold, or takes it off.
	Hold(ctx context.Context, on bool) error
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
	// Backups are further proxies, tried in their order where one before
	// cannot take a call.
	Backups []string
	// Username and Password answer the carrier's challenges, where it has any.
	Username string
	Password Secret
	// Realm pins the realm whose challenges are answered; empty pins the
	// first one that the proxy itself sends.
	Realm string
	// Register has us keep a registration at the proxy (RFC 3261 section 10).
	Register bool
	// Codecs are the encoding names to offer, the preferred first; empty is
	// all that there are.
	Codecs []string
	// Encryption is whether audio travels encrypted (RFC 4568).
	Encryption Encryption
	// Keys is how keys are pressed and heard beside RFC 4733.
	Keys KeyWay
	// Asserted adds the caller number as P-Asserted-Identity (RFC 3325).
	Asserted bool
	// Private hides the caller number from the party (RFC 3323): it is asserted
	// to the carrier alone.
	Private bool
	// Diversion is the number that the call is said to be diverted from (RFC
	// 5806); empty for none.
	Diversion string
	// Headers are added to the request that opens the line.
	Headers map[string]string
}

// An Encryption is whether audio travels encrypted.
type Encryption string

// Encryptions.
const (
	Plain     Encryption = ""         // RTP
	Encrypted Encryption = "required" // SRTP or no call
)

// A KeyWay is how keys travel where RFC 4733 is not all there is.
type KeyWay string

// KeyWays.
const (
	Events KeyWay = ""       // RFC 4733, and INFO where the party sends it
	InBand KeyWay = "inband" // as tones in the audio, heard and sent
)

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

// A Secret is a string that never prints.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "[secret]" }

// MarshalText keeps a secret out of JSON, YAML and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }
