package sdp

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes returns the description as text. The text contains the secret keys.
func (d *Description) Bytes() []byte {
	var b strings.Builder
	family := "IP4"
	if !d.Addr.Addr().Is4() {
		family = "IP6"
	}
	addr := d.Addr.Addr().String()
	fmt.Fprintf(&b, "v=0\r\no=- %d %d IN %s %s\r\ns=-\r\nc=IN %s %s\r\nt=0 0\r\n",
		d.Origin.ID, d.Origin.Version, family, addr, family, addr)
	if len(d.streams) == 0 {
		d.write(&b)
	}
	for i, s := range d.streams {
		if i == d.index {
			d.write(&b)
		} else { // a rejected stream (RFC 3264 section 6)
			fmt.Fprintf(&b, "m=%s 0 %s %s\r\n", s.kind, s.profile, s.format)
		}
	}
	return []byte(b.String())
}

// maxPtime is the a=maxptime that Parley announces, in ms.
const maxPtime = 60

func (d *Description) write(b *strings.Builder) {
	fmt.Fprintf(b, "m=audio %d %s", d.Addr.Port(), first(d.Profile, "RTP/AVP"))
	for _, f := range d.Formats {
		b.WriteString(" " + strconv.Itoa(int(f.PayloadType)))
	}
	b.WriteString("\r\n")
	for _, c := range d.Crypto {
		fmt.Fprintf(b, "a=crypto:%d %s\r\n", c.Tag, c.Key.Attribute())
	}
	for _, f := range d.Formats {
		name := f.Name
		if name == eventName {
			name = strings.ToLower(name) // lower case as in the RFC; some peers compare case-sensitively
		}
		fmt.Fprintf(b, "a=rtpmap:%d %s/%d", f.PayloadType, name, f.ClockRate)
		if f.Channels > 1 {
			fmt.Fprintf(b, "/%d", f.Channels)
		}
		b.WriteString("\r\n")
		if f.Params != "" {
			fmt.Fprintf(b, "a=fmtp:%d %s\r\n", f.PayloadType, f.Params)
		}
	}
	if d.Ptime > 0 {
		fmt.Fprintf(b, "a=ptime:%d\r\na=maxptime:%d\r\n", d.Ptime, maxPtime)
	}
	if d.RTCP.IsValid() {
		fmt.Fprintf(b, "a=rtcp:%d\r\n", d.RTCP.Port())
	}
	if d.Mux {
		b.WriteString("a=rtcp-mux\r\n")
	}
	fmt.Fprintf(b, "a=%s\r\n", d.Direction)
}
