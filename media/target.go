package media

import (
	"errors"
	"net/netip"
	"strings"
	"time"
)

// Target is a number to dial, with the trunk and the identity of the caller.
type Target struct {
	// ID identifies the attempt. The SIP Call-ID starts with it.
	ID string
	// To is the user part of the request URI: digits with the trunk's prefix.
	To string
	// Number is the dialed number without the trunk's prefix. It may be empty if To has no prefix.
	Number string
	// From is the caller number that the callee sees: digits, with or without +.
	From string
	// Trunk is the trunk through which the number is dialed.
	Trunk Trunk
	// RingTimeout is the maximum ringing time; 0 means 45 s.
	RingTimeout time.Duration
	// Headers are added to the INVITE.
	Headers map[string]string
	// NotAfter is the latest time at which the INVITE may be sent. After it, dialing fails with ErrTooLate. Zero
	// means no limit.
	NotAfter time.Time
}

// IsLate reports whether NotAfter has passed. It compares the monotonic and the wall clock: the monotonic clock may not
// count a suspension of the machine, and the wall clock may be set back.
func (t Target) IsLate(now time.Time) bool {
	if t.NotAfter.IsZero() {
		return false
	}
	return !now.Before(t.NotAfter) || !now.Round(0).Before(t.NotAfter.Round(0))
}

// ErrTooLate means that the INVITE was not sent because NotAfter had passed.
var ErrTooLate = errors.New("too late to send the request")

// ErrPaused means that the INVITE was not sent, because the carrier asked for a pause (Retry-After) and no other
// proxy of the trunk is available.
var ErrPaused = errors.New("the carrier sent Retry-After")

// Trunk is a SIP trunk of a carrier.
type Trunk struct {
	// Proxy is the URI to which requests are sent: "sip:host:port;transport=udp".
	Proxy string
	// Backups are further proxies. They are tried in this order if the proxies before cannot take a call.
	Backups []string
	// Username and Password are the credentials for the carrier's digest challenges.
	Username string
	Password Secret
	// Realm is the only authentication realm whose challenges are answered. If it is empty, the first realm that the
	// proxy sends is used.
	Realm string
	// Sources are networks from which SIP messages of a call may come, besides the proxies and the addresses that the
	// carrier names in the call.
	Sources []netip.Prefix
	// Register says to stay registered at the proxy (RFC 3261 section 10).
	Register bool
	// Codecs are the encoding names to offer, in the order of preference. Empty means all.
	Codecs []string
	// Encryption says whether media is RTP or SRTP (RFC 4568).
	Encryption Encryption
	// Keys says how DTMF is sent and detected, besides RFC 4733.
	Keys KeyMode
	// Plus writes the called and the caller number with a leading + (E.164). A prefix before the called number replaces
	// the +.
	Plus bool
	// Asserted adds the caller number in a P-Asserted-Identity header (RFC 3325).
	Asserted bool
	// Private hides the caller number from the callee (RFC 3323). Only the carrier sees it.
	Private bool
	// Diversion is the number that diverted the call (RFC 5806); empty means none.
	Diversion string
	// Headers are added to the INVITE.
	Headers map[string]string
	// MediaSources are networks from which media may come, besides the SDP address and the signaling addresses. If
	// set, media from all other addresses is dropped.
	MediaSources []netip.Prefix
	// FirstMedia is how long to wait for the first media packet. MediaGap is how long media may be missing after it.
	// 0 means the default of the SIP user agent.
	FirstMedia, MediaGap time.Duration
}

// Users returns the called and the caller number in the form that the trunk wants.
func (t Target) Users() (to, from string) {
	to, from = t.To, t.From
	if !t.Trunk.Plus {
		return to, from
	}
	if t.Number == "" || t.Number == t.To {
		to = "+" + strings.TrimPrefix(to, "+")
	}
	return to, "+" + strings.TrimPrefix(from, "+")
}

// Encryption says whether audio is encrypted.
type Encryption string

// Values of Encryption.
const (
	Plain     Encryption = ""         // RTP without encryption
	Encrypted Encryption = "required" // SRTP; the call fails if the carrier does not support it
)

// KeyMode says how DTMF digits are sent and received.
type KeyMode string

// Values of KeyMode.
const (
	Events KeyMode = ""       // RFC 4733 events; digits by SIP INFO are received too
	InBand KeyMode = "inband" // tones in the audio, sent and detected
)

// Progress is the state of a dialed call before it is answered.
type Progress string

// Values of Progress.
const (
	// Sent means that the INVITE was sent, so the callee's phone may ring.
	Sent Progress = "sent"
	// Ringing means that the carrier responded with 180 or 183.
	Ringing Progress = "ringing"
)

// Secret is a string that is never printed.
type Secret string

// String implements fmt.Stringer.
func (Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return "[secret]" }

// MarshalText implements encoding.TextMarshaler. It keeps the secret out of JSON, YAML and logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }
