// Package sdp describes a call's audio (RFC 4566) and negotiates it by offer
// and answer (RFC 3264). It accepts what real peers send, returns an error for
// invalid input, and never panics.
package sdp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/srtp"
)

// maxLen limits a description in bytes. Real ones are far smaller.
const maxLen = 16 << 10

// A Direction is what the author of a description does: send, receive or both.
type Direction string

// Directions (RFC 4566 section 6).
const (
	SendRecv Direction = "sendrecv"
	SendOnly Direction = "sendonly"
	RecvOnly Direction = "recvonly"
	Inactive Direction = "inactive"
)

// A Format is a payload type and its meaning.
type Format struct {
	PayloadType uint8
	Name        string // encoding name, upper case
	ClockRate   int    // Hz
	Channels    int
	Params      string // from the fmtp line
}

// A Description is one side's audio.
type Description struct {
	Addr      netip.AddrPort // address for media to this side
	Formats   []Format       // preferred first
	Direction Direction
	Ptime     int            // ms; 0 if absent
	Maxptime  int            // ms; 0 if absent
	RTCP      netip.AddrPort // given, or the port above Addr
	Mux       bool           // RTCP may use Addr (RFC 5761)
	Profile   string         // such as "RTP/AVP"; empty means the same
	Crypto    []Crypto       // keys that this side sends with; one is chosen
	Origin    Origin

	streams  []stream       // all streams of the parsed SDP in order; empty for a single one
	index    int            // of this stream in streams
	siblings []*Description // all audio streams of the parsed SDP
}

// A stream is a media line, kept to reject it in an answer.
type stream struct {
	kind, profile, format string
}

// A Crypto is one crypto attribute (RFC 4568).
type Crypto struct {
	Tag int
	Key srtp.Key
}

// An Origin names a session and its version (RFC 4566 section 5.2).
type Origin struct {
	ID, Version uint64
}

// IsRejected reports whether the port is zero: no audio.
func (d *Description) IsRejected() bool { return d.Addr.Port() == 0 }

// IsEncrypted reports whether the profile is SRTP.
func (d *Description) IsEncrypted() bool { return strings.HasPrefix(d.Profile, "RTP/S") }

// IsOnHold reports whether this side does not receive, or is on hold.
func (d *Description) IsOnHold() bool {
	return d.Direction == SendOnly || d.Direction == Inactive || d.Addr.Addr().IsUnspecified()
}

// IsMuted reports whether this side does not send.
func (d *Description) IsMuted() bool {
	return d.Direction == RecvOnly || d.Direction == Inactive || d.Addr.Addr().IsUnspecified()
}

// static returns the format of a payload type that needs no rtpmap (RFC 3551
// section 6).
func static(pt uint8) (Format, bool) {
	names := map[uint8]Format{
		0:  {Name: "PCMU", ClockRate: 8000},
		3:  {Name: "GSM", ClockRate: 8000},
		4:  {Name: "G723", ClockRate: 8000},
		8:  {Name: "PCMA", ClockRate: 8000},
		9:  {Name: "G722", ClockRate: 8000},
		13: {Name: "CN", ClockRate: 8000},
		15: {Name: "G728", ClockRate: 8000},
		18: {Name: "G729", ClockRate: 8000},
	}
	f, ok := names[pt]
	f.PayloadType, f.Channels = pt, 1
	return f, ok
}

// Parse reads a description and returns its first audio stream that is not
// rejected, else the first.
func Parse(text []byte) (*Description, error) {
	if len(text) > maxLen {
		return nil, fmt.Errorf("sdp: %d bytes long", len(text))
	}
	p := parser{}
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimRight(line, "\r \t\x00")
		if line == "" {
			continue
		}
		if len(line) < 2 || line[1] != '=' {
			return nil, fmt.Errorf("sdp: line %d is not type=value", n+1)
		}
		if err := p.line(line[0], strings.TrimSpace(line[2:])); err != nil {
			return nil, fmt.Errorf("sdp: line %d: %w", n+1, err)
		}
	}
	return p.finish()
}

func parsePort(text string) (uint16, error) {
	port, _, _ := strings.Cut(text, "/") // "port/count" of RFC 4566 section 5.14
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %q", text)
	}
	return uint16(n), nil
}
