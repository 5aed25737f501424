// Package sdp describes the audio of a call (RFC 4566) and agrees on it by
// offer and answer (RFC 3264). It reads what peers really send and refuses
// with an error what makes no sense; it never panics.
package sdp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/crypt"
)

// maxLen bounds a description. Real ones are far below it.
const maxLen = 16 << 10

// A Direction says who may send, seen from who wrote the description.
type Direction string

// Directions (RFC 4566 section 6).
const (
	SendRecv Direction = "sendrecv"
	SendOnly Direction = "sendonly"
	RecvOnly Direction = "recvonly"
	Inactive Direction = "inactive"
)

// A Format is one way to send: a payload type and what it means.
type Format struct {
	PayloadType uint8
	Name        string // encoding name, upper case
	ClockRate   int    // Hz
	Channels    int
	Params      string // of the fmtp line
}

// A Description is the audio of one side.
type Description struct {
	Addr      netip.AddrPort // where it wants to be sent to
	Formats   []Format       // the preferred first
	Direction Direction
	Ptime     int            // ms; 0 where it does not say
	Maxptime  int            // ms; 0 where it does not say
	RTCP      netip.AddrPort // as told, or the port above Addr
	Mux       bool           // RTCP may come to Addr too (RFC 5761)
	Profile   string         // "RTP/AVP" or another; empty is the plain one
	Crypto    []Crypto       // keys that the side sends under, one of which is chosen
	Origin    Origin

	streams  []stream       // all of the text, in order; none where there is but this
	place    int            // of this among them
	siblings []*Description // further audio of the same text
}

// A stream is a media line that may have to be refused.
type stream struct {
	kind, profile, format string
}

// A Crypto is one crypto attribute (RFC 4568).
type Crypto struct {
	Tag int
	Key crypt.Key
}

// An Origin names a session and its version (RFC 4566 section 5.2).
type Origin struct {
	ID, Version uint64
}

// Refused says that the side wants no audio: it set the port to zero.
func (d *Description) Refused() bool { return d.Addr.Port() == 0 }

// Encrypted says that the side speaks SRTP.
func (d *Description) Encrypted() bool { return strings.HasPrefix(d.Profile, "RTP/S") }

// Held says that the side does not want to hear us, or is on hold.
func (d *Description) Held() bool {
	return d.Direction == SendOnly || d.Direction == Inactive || d.Addr.Addr().IsUnspecified()
}

// Quiet says that the side does not send.
func (d *Description) Quiet() bool {
	return d.Direction == RecvOnly || d.Direction == Inactive || d.Addr.Addr().IsUnspecified()
}

// statics are the payload types whose meaning needs no rtpmap (RFC 3551
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
// refused, or that is.
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
