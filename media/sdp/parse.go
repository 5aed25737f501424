package sdp

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A part is a level of a description: the session's, or one stream's.
type part struct {
	addr      netip.Addr
	direction Direction
	ptime     int
	rtcp      string
}

// A parser collects the lines of a description. Only the first audio stream
// is of interest; lines of the others, and lines unknown, are passed over.
type parser struct {
	version bool
	origin  Origin
	session part
	stream  part
	level   *part // where attributes go; nil within a stream that is passed over
	found   bool
	media   int // m= lines seen
	port    uint16
	types   []uint8
	maps    map[uint8]Format
	params  map[uint8]string
}

func (p *parser) line(kind byte, value string) error {
	if !p.version {
		if kind != 'v' || value != "0" {
			return errors.New("want v=0 first")
		}
		p.version, p.level = true, &p.session
		return nil
	}
	switch kind {
	case 'o':
		p.origin = parseOrigin(value)
	case 'm':
		return p.mediaLine(value)
	case 'c':
		if p.level == nil {
			return nil
		}
		addr, err := parseConnection(value)
		if err != nil {
			return err
		}
		p.level.addr = addr
	case 'a':
		if p.level != nil {
			return p.attribute(value)
		}
	}
	return nil
}

// parseOrigin is lenient: nothing depends on the ids but their change.
func parseOrigin(value string) (o Origin) {
	if f := strings.Fields(value); len(f) >= 3 {
		o.ID, _ = strconv.ParseUint(f[1], 10, 64)
		o.Version, _ = strconv.ParseUint(f[2], 10, 64)
	}
	return o
}

func parseConnection(value string) (netip.Addr, error) {
	f := strings.Fields(value)
	if len(f) != 3 || !strings.EqualFold(f[0], "IN") {
		return netip.Addr{}, fmt.Errorf("connection %q", value)
	}
	host, _, _ := strings.Cut(f[2], "/") // multicast scope, RFC 4566 section 5.7
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("connection address %q is not an IP", host)
	}
	return addr.Unmap(), nil
}

func (p *parser) mediaLine(value string) error {
	p.level = nil
	p.media++
	f := strings.Fields(value)
	if len(f) < 4 {
		return fmt.Errorf("media %q is cut short", value)
	}
	if p.found || !strings.EqualFold(f[0], "audio") {
		return nil
	}
	if !strings.HasPrefix(strings.ToUpper(f[2]), "RTP/AVP") {
		return nil // RTP/SAVP and others: not spoken here
	}
	port, err := parsePort(f[1])
	if err != nil {
		return err
	}
	p.found, p.port, p.level = true, port, &p.stream
	p.maps, p.params = map[uint8]Format{}, map[uint8]string{}
	for _, text := range f[3:] {
		pt, err := strconv.ParseUint(text, 10, 7)
		if err != nil {
			return fmt.Errorf("payload type %q", text)
		}
		p.types = append(p.types, uint8(pt))
	}
	return nil
}

func (p *parser) attribute(value string) error {
	name, rest, _ := strings.Cut(value, ":")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(name) {
	case "sendrecv", "sendonly", "recvonly", "inactive":
		p.level.direction = Direction(strings.ToLower(name))
	case "ptime":
		p.level.ptime, _ = strconv.Atoi(rest) // a wish, not a condition
	case "rtcp":
		p.level.rtcp = rest
	case "rtpmap":
		return p.rtpmap(rest)
	case "fmtp":
		text, params, _ := strings.Cut(rest, " ")
		if pt, err := strconv.ParseUint(text, 10, 7); err == nil && p.params != nil {
			p.params[uint8(pt)] = strings.TrimSpace(params)
		}
	}
	return nil
}

// rtpmap reads "96 opus/48000/2".
func (p *parser) rtpmap(value string) error {
	if p.maps == nil {
		return nil // at session level, where it means nothing
	}
	text, coding, _ := strings.Cut(value, " ")
	pt, err := strconv.ParseUint(text, 10, 7)
	parts := strings.Split(strings.TrimSpace(coding), "/")
	if err != nil || len(parts) < 2 || parts[0] == "" {
		return fmt.Errorf("rtpmap %q", value)
	}
	clock, err := strconv.ParseUint(parts[1], 10, 31)
	if err != nil || clock == 0 {
		return fmt.Errorf("rtpmap %q", value)
	}
	f := Format{PayloadType: uint8(pt), Name: strings.ToUpper(parts[0]), ClockRate: int(clock), Channels: 1}
	if len(parts) > 2 {
		if f.Channels, err = strconv.Atoi(parts[2]); err != nil || f.Channels < 1 {
			return fmt.Errorf("rtpmap %q", value)
		}
	}
	p.maps[uint8(pt)] = f
	return nil
}

func (p *parser) finish() (*Description, error) {
	switch {
	case !p.version:
		return nil, errors.New("sdp: empty")
	case p.media == 0:
		return nil, errors.New("sdp: no media")
	case !p.found:
		return nil, errors.New("sdp: no audio over RTP")
	}
	addr := p.stream.addr
	if !addr.IsValid() {
		addr = p.session.addr
	}
	if !addr.IsValid() && p.port != 0 {
		return nil, errors.New("sdp: no connection address")
	}
	d := &Description{
		Addr:      netip.AddrPortFrom(addr, p.port),
		Direction: first(p.stream.direction, p.session.direction, SendRecv),
		Ptime:     max(0, first(p.stream.ptime, p.session.ptime)),
		Origin:    p.origin,
	}
	for _, pt := range p.types {
		f, ok := p.maps[pt]
		if !ok {
			f, ok = static(pt)
		}
		if ok {
			f.Params = p.params[pt]
			d.Formats = append(d.Formats, f)
		}
	}
	d.RTCP = p.rtcp(d.Addr)
	return d, nil
}

// rtcp is where control packets go (RFC 3605).
func (p *parser) rtcp(audio netip.AddrPort) netip.AddrPort {
	text, where, _ := strings.Cut(first(p.stream.rtcp, p.session.rtcp), " ")
	addr := audio.Addr()
	if a, err := parseConnection(where); err == nil {
		addr = a
	}
	if port, err := parsePort(text); err == nil {
		return netip.AddrPortFrom(addr, port)
	}
	if audio.Port() == 0 || audio.Port() == 0xffff {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, audio.Port()+1)
}

// first returns the first value that is set.
func first[T comparable](values ...T) (zero T) {
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
