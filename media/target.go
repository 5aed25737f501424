package media

import (
	"errors"
	"time"
)

// A Target says whom to reach, through whom, and how to appear to them.
type Target struct {
	// ID names the attempt; it is the stem of the Call-ID.
	ID string
	// To is what the carrier is asked to dial: digits, prefix included.
	To string
	// Number is the number that To reaches, without what the carrier wants
	// before it; empty where To is just that.
	Number string
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

// A Secret is a string that never prints.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "[secret]" }

// MarshalText keeps a secret out of JSON, YAML and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }
