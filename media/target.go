package media

import (
	"errors"
	"net/netip"
	"time"
)

// A Target is a number to dial, the trunk to use, and the caller identity.
type Target struct {
	// ID identifies the attempt; the Call-ID starts with it.
	ID string
	// To is the user part of the request URI: digits including the trunk's
	// prefix.
	To string
	// Number is the dialed number without the trunk's prefix; empty if To has
	// none.
	Number string
	// From is the caller number to present, digits with or without +.
	From string
	// Trunk is the carrier.
	Trunk Trunk
	// RingTimeout limits ringing; 0 means 45 s.
	RingTimeout time.Duration
	// Headers are added to the INVITE.
	Headers map[string]string
	// NotAfter is the latest time to send the INVITE; zero means no limit. A
	// later attempt fails with ErrTooLate.
	NotAfter time.Time
}

// ErrTooLate means that NotAfter passed before the request was sent.
var ErrTooLate = errors.New("too late to send the request")

// ErrPaused means that the request was not sent because the carrier sent
// Retry-After and no other proxy of the trunk is available.
var ErrPaused = errors.New("the carrier sent Retry-After")

// A Trunk is a carrier's SIP trunk.
type Trunk struct {
	// Proxy is the URI to send requests to: "sip:host:port;transport=udp".
	Proxy string
	// Backups are further proxies, tried in order if an earlier one cannot
	// take a call.
	Backups []string
	// Username and Password answer the carrier's digest challenges.
	Username string
	Password Secret
	// Realm is the only realm whose challenges are answered; if empty, the
	// first realm that the proxy sends.
	Realm string
	// Sources are further networks that in-dialog messages may come from, in
	// addition to the proxies and the addresses that the carrier names in a
	// call.
	Sources []netip.Prefix
	// Register keeps a registration at the proxy (RFC 3261 section 10).
	Register bool
	// Codecs are the encoding names to offer, preferred first; empty means
	// all.
	Codecs []string
	// Encryption selects RTP or SRTP (RFC 4568).
	Encryption Encryption
	// Keys selects how DTMF is sent and detected in addition to RFC 4733.
	Keys KeyMode
	// Asserted adds the caller number as P-Asserted-Identity (RFC 3325).
	Asserted bool
	// Private hides the caller number from the callee (RFC 3323); only the
	// carrier receives it.
	Private bool
	// Diversion is the diverting number (RFC 5806); empty means none.
	Diversion string
	// Headers are added to the INVITE.
	Headers map[string]string
	// MediaSources are networks that media may come from, in addition to the
	// SDP address and the signaling addresses. If set, media from any other
	// network is dropped.
	MediaSources []netip.Prefix
	// FirstMedia and MediaGap limit how long no media may arrive: before the
	// first packet and later. 0 means the user agent's default.
	FirstMedia, MediaGap time.Duration
}

// An Encryption selects whether audio is encrypted.
type Encryption string

// Encryptions.
const (
	Plain     Encryption = ""         // RTP
	Encrypted Encryption = "required" // SRTP; without it the call fails
)

// A KeyMode selects how DTMF travels.
type KeyMode string

// Key modes.
const (
	Events KeyMode = ""       // RFC 4733; received SIP INFO is accepted too
	InBand KeyMode = "inband" // tones in the audio, sent and detected
)

// Progress is the state of a dialed call before it is answered.
type Progress string

// Progress values.
const (
	// Sent: the INVITE was sent and the callee's phone may ring.
	Sent Progress = "sent"
	// Ringing: the carrier reported 180 or 183.
	Ringing Progress = "ringing"
)

// A Secret is a string that is never printed.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "[secret]" }

// MarshalText keeps a secret out of JSON, YAML and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }
