package sdp

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// level holds the attributes of the session or of one audio stream.
type level struct {
	addr      netip.Addr
	direction Direction
	ptime     int
	maxptime  int
	rtcp      string
	mux       bool
	crypto    []Crypto

	index   int // index among the media lines; only a stream uses this field and those below
	profile string
	port    uint16
	types   []uint8
	maps    map[uint8]Format
	params  map[uint8]string
}

// parser collects the lines of a description. It ignores unknown lines, and streams other than audio over RTP.
type parser struct {
	version bool
	origin  Origin
	session level
	audio   []*level
	level   *level   // level to which attributes are added; nil in an ignored stream
	streams []stream // all media lines
}

func (p *parser) line(kind byte, value string) error {
	if !p.version {
		if kind != 'v' || value != "0" {
			return errors.New("the first line must be v=0")
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
			return p.level.attribute(value)
		}
	}
	return nil
}

// isRTP reports whether a profile is RTP without DTLS.
func isRTP(profile string) bool {
	switch profile {
	case "RTP/AVP", "RTP/AVPF", "RTP/SAVP", "RTP/SAVPF":
		return true
	default:
		return false
	}
}

func (p *parser) mediaLine(value string) error {
	p.level = nil
	f := strings.Fields(value)
	if len(f) < 4 {
		return fmt.Errorf("media %q is cut short", value)
	}
	p.streams = append(p.streams, stream{f[0], f[2], f[3]})
	profile := strings.ToUpper(f[2])
	if !strings.EqualFold(f[0], "audio") || !isRTP(profile) {
		return nil
	}
	port, err := parsePort(f[1])
	if err != nil {
		return err
	}
	a := &level{index: len(p.streams) - 1, profile: profile, port: port, maps: map[uint8]Format{}, params: map[uint8]string{}}
	for _, text := range f[3:] {
		pt, err := parseType(text)
		if err != nil {
			return err
		}
		a.types = append(a.types, pt)
	}
	p.audio, p.level = append(p.audio, a), a
	return nil
}

func (p *parser) finish() (*Description, error) {
	switch {
	case !p.version:
		return nil, errors.New("sdp: the description is empty")
	case len(p.streams) == 0:
		return nil, errors.New("sdp: no media line")
	case len(p.audio) == 0:
		return nil, errors.New("sdp: no audio over RTP")
	}
	var best *Description
	var all []*Description
	for _, a := range p.audio {
		d, err := p.describe(a)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
		if best == nil || best.IsRejected() && !d.IsRejected() {
			best = d
		}
	}
	best.siblings = all
	return best, nil
}

func (p *parser) describe(a *level) (*Description, error) {
	addr := a.addr
	if !addr.IsValid() {
		addr = p.session.addr
	}
	if !addr.IsValid() && a.port != 0 {
		return nil, errors.New("sdp: no connection address")
	}
	d := &Description{
		Addr:      netip.AddrPortFrom(addr, a.port),
		Direction: first(a.direction, p.session.direction, SendRecv),
		Ptime:     max(0, first(a.ptime, p.session.ptime)),
		Maxptime:  max(0, first(a.maxptime, p.session.maxptime)),
		Mux:       a.mux || p.session.mux,
		Profile:   a.profile,
		Crypto:    a.crypto,
		Origin:    p.origin,
		streams:   p.streams,
		index:     a.index,
	}
	if len(d.Crypto) == 0 {
		d.Crypto = p.session.crypto
	}
	for _, pt := range a.types {
		f, ok := a.maps[pt]
		if !ok {
			f, ok = static(pt)
		}
		if ok {
			f.Params = a.params[pt]
			d.Formats = append(d.Formats, f)
		}
	}
	d.RTCP = control(first(a.rtcp, p.session.rtcp), d.Addr)
	return d, nil
}

// control returns the RTCP address in an rtcp attribute (RFC 3605).
func control(value string, audio netip.AddrPort) netip.AddrPort {
	text, where, _ := strings.Cut(value, " ")
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

func first[T comparable](values ...T) (zero T) {
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
