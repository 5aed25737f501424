package sdp

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/codec"
)

// keyName is the encoding name of telephone events (RFC 4733 section 7.1.1).
const keyName = "TELEPHONE-EVENT"

// keyType is the payload type under which we offer telephone events.
const keyType = 101

// ErrNoCommonCodec is returned when two sides have no audio format in common.
var ErrNoCommonCodec = errors.New("sdp: no common audio codec")

// An Agreement is what two sides agreed on.
type Agreement struct {
	Remote      netip.AddrPort // where the other side wants to be sent to
	Codec       codec.Codec
	PayloadType uint8
	KeyType     uint8 // payload type of telephone events; 0 where there is none
	Mute        bool  // the other side does not want to hear us
	Quiet       bool  // the other side does not send
}

// Offer describes our side with every codec we have.
func Offer(local netip.AddrPort, origin Origin) *Description {
	d := &Description{Addr: local, Direction: SendRecv, Ptime: 20, Origin: origin}
	for _, c := range codec.All() {
		d.Formats = append(d.Formats, Format{PayloadType: c.PayloadType(), Name: c.Name(), ClockRate: c.ClockRate(), Channels: 1})
	}
	d.Formats = append(d.Formats, Format{PayloadType: keyType, Name: keyName, ClockRate: 8000, Channels: 1, Params: "0-16"})
	return d
}

// Agree finds what to send to, and hear from, the side that wrote theirs: an
// answer to our offer, or an offer. It takes the first of their codecs that we
// have, under their payload type, for types are matched by name.
func Agree(theirs *Description) (Agreement, error) {
	if theirs.Refused() {
		return Agreement{}, errors.New("sdp: audio refused")
	}
	a := Agreement{Remote: theirs.Addr, Mute: theirs.Held(), Quiet: theirs.Quiet()}
	for _, f := range theirs.Formats {
		if f.Name == keyName && f.ClockRate == 8000 && a.KeyType == 0 {
			a.KeyType = f.PayloadType
			continue
		}
		c, ok := codec.ByName(f.Name)
		if ok && a.Codec == nil && f.ClockRate == c.ClockRate() && f.Channels == 1 {
			a.Codec, a.PayloadType = c, f.PayloadType
		}
	}
	if a.Codec == nil {
		return Agreement{}, ErrNoCommonCodec
	}
	return a, nil
}

// Answer describes our side in answer to an offer that led to a.
func Answer(local netip.AddrPort, origin Origin, a Agreement) *Description {
	d := &Description{Addr: local, Ptime: 20, Origin: origin, Direction: SendRecv}
	switch {
	case a.Mute && a.Quiet:
		d.Direction = Inactive
	case a.Mute:
		d.Direction = RecvOnly
	case a.Quiet:
		d.Direction = SendOnly
	}
	d.Formats = []Format{{PayloadType: a.PayloadType, Name: a.Codec.Name(), ClockRate: a.Codec.ClockRate(), Channels: 1}}
	if a.KeyType != 0 {
		d.Formats = append(d.Formats, Format{PayloadType: a.KeyType, Name: keyName, ClockRate: 8000, Channels: 1, Params: "0-16"})
	}
	return d
}

// Bytes writes the description.
func (d *Description) Bytes() []byte {
	var b strings.Builder
	family := "IP4"
	if !d.Addr.Addr().Is4() {
		family = "IP6"
	}
	addr := d.Addr.Addr().String()
	fmt.Fprintf(&b, "v=0\r\no=- %d %d IN %s %s\r\ns=-\r\nc=IN %s %s\r\nt=0 0\r\n",
		d.Origin.ID, d.Origin.Version, family, addr, family, addr)
	fmt.Fprintf(&b, "m=audio %d RTP/AVP", d.Addr.Port())
	for _, f := range d.Formats {
		b.WriteString(" " + strconv.Itoa(int(f.PayloadType)))
	}
	b.WriteString("\r\n")
	for _, f := range d.Formats {
		name := f.Name
		if name == keyName {
			name = strings.ToLower(name) // as the RFC spells it; some peers compare by case
		}
		fmt.Fprintf(&b, "a=rtpmap:%d %s/%d", f.PayloadType, name, f.ClockRate)
		if f.Channels > 1 {
			fmt.Fprintf(&b, "/%d", f.Channels)
		}
		b.WriteString("\r\n")
		if f.Params != "" {
			fmt.Fprintf(&b, "a=fmtp:%d %s\r\n", f.PayloadType, f.Params)
		}
	}
	if d.Ptime > 0 {
		fmt.Fprintf(&b, "a=ptime:%d\r\n", d.Ptime)
	}
	if d.RTCP.IsValid() {
		fmt.Fprintf(&b, "a=rtcp:%d\r\n", d.RTCP.Port())
	}
	fmt.Fprintf(&b, "a=%s\r\n", d.Direction)
	return []byte(b.String())
}
