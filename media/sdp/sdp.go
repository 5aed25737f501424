// Package sdp describes the audio of a call (RFC 4566) and negotiates it by offer and answer (RFC 3264). It accepts
// what real peers send, returns an error for invalid input, and never panics.
package sdp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/srtp"
)

// maxLen is the maximum length of a description in bytes. Real descriptions are much shorter.
const maxLen = 16 << 10

// Direction says whether the author of a description sends, receives, or both.
type Direction string

// Directions (RFC 4566 section 6).
const (
	SendRecv Direction = "sendrecv"
	SendOnly Direction = "sendonly"
	RecvOnly Direction = "recvonly"
	Inactive Direction = "inactive"
)

// Format is a payload type with its meaning.
type Format struct {
	PayloadType uint8
	Name        string // encoding name in upper case
	ClockRate   int    // in Hz
	Channels    int
	Params      string // parameters in the fmtp line
}

// Description describes the audio of one side.
type Description struct {
	Addr      netip.AddrPort // address to which media for this side is sent
	Formats   []Format       // in the order of preference
	Direction Direction
	Ptime     int            // in ms; 0 if absent
	Maxptime  int            // in ms; 0 if absent
	RTCP      netip.AddrPort // address for RTCP; by default the port above that of Addr
	Mux       bool           // RTCP may use the address Addr (RFC 5761)
	Profile   string         // such as "RTP/AVP"; empty means "RTP/AVP"
	Crypto    []Crypto       // keys with which this side may encrypt; the other side chooses one
	Origin    Origin

	streams  []stream       // all streams of the parsed SDP in order; empty if there is only one
	index    int            // index of this stream in streams
	siblings []*Description // all audio streams of the parsed SDP
}

// stream is a media line of an offer. The answer needs it to reject the stream.
type stream struct {
	kind, profile, format string
}

// Crypto is a crypto attribute (RFC 4568).
type Crypto struct {
	Tag int
	Key srtp.Key
}

// Origin identifies a session and its version (RFC 4566 section 5.2).
type Origin struct {
	ID, Version uint64
}

// IsRejected reports whether the port is zero, which means that there is no audio.
func (d *Description) IsRejected() bool { return d.Addr.Port() == 0 }

// IsEncrypted reports whether the profile is SRTP.
func (d *Description) IsEncrypted() bool { return strings.HasPrefix(d.Profile, "RTP/S") }

// IsOnHold reports whether this side does not receive, or has the address 0.0.0.0.
func (d *Description) IsOnHold() bool {
	return d.Direction == SendOnly || d.Direction == Inactive || d.Addr.Addr().IsUnspecified()
}

// IsMuted reports whether this side does not send.
func (d *Description) IsMuted() bool {
	return d.Direction == RecvOnly || d.Direction == Inactive || d.Addr.Addr().IsUnspecified()
}

// static returns the format of a payload type that needs no rtpmap line (RFC 3551 section 6).
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

// Parse reads a description. It returns the first audio stream that is not rejected. If all are rejected, it returns
// the first.
func Parse(text []byte) (*Description, error) {
	if len(text) > maxLen {
		return nil, fmt.Errorf("sdp: %d bytes long, want at most %d", len(text), maxLen)
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
	port, _, _ := strings.Cut(text, "/") // the port may be "port/count" (RFC 4566 section 5.14)
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("invalid port %q", text)
	}
	return uint16(n), nil
}
