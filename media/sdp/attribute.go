package sdp

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/media/srtp"
)

// maxCrypto is the maximum number of crypto attributes that are read for one stream.
const maxCrypto = 16

func (l *level) attribute(value string) error {
	name, rest, _ := strings.Cut(value, ":")
	rest = strings.TrimSpace(rest)
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "sendrecv", "sendonly", "recvonly", "inactive":
		l.direction = Direction(name)
	case "ptime":
		l.ptime = milliseconds(rest)
	case "maxptime":
		l.maxptime = milliseconds(rest)
	case "rtcp":
		l.rtcp = rest
	case "rtcp-mux":
		l.mux = true
	case "crypto":
		return l.key(rest)
	case "rtpmap":
		return l.rtpmap(rest)
	case "fmtp":
		text, params, _ := strings.Cut(rest, " ")
		if pt, err := parseType(text); err == nil && l.params != nil {
			l.params[pt] = strings.TrimSpace(params)
		}
	}
	return nil
}

// milliseconds parses the value of ptime or maxptime. It returns 0 for an invalid value.
func milliseconds(text string) int {
	f, err := strconv.ParseFloat(text, 64) // some peers write 20.0
	if err != nil || !(f >= 0 && f < 1e6) {
		return 0
	}
	return int(f)
}

// key reads a crypto attribute like "1 AES_CM_128_HMAC_SHA1_80 inline:...". It ignores an unsupported attribute,
// because a supported one may follow.
func (l *level) key(value string) error {
	tag, rest, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(tag, 10, 31)
	if err != nil {
		return fmt.Errorf("invalid crypto tag %.20q", tag)
	}
	k, err := srtp.Parse(rest)
	switch {
	case errors.Is(err, srtp.ErrUnsupported):
		return nil
	case err != nil:
		return err
	}
	if len(l.crypto) < maxCrypto {
		l.crypto = append(l.crypto, Crypto{Tag: int(n), Key: k})
	}
	return nil
}

// rtpmap reads a line like "96 opus/48000/2".
func (l *level) rtpmap(value string) error {
	if l.maps == nil {
		return nil // the attribute has no meaning at session level
	}
	text, coding, _ := strings.Cut(value, " ")
	pt, err := parseType(text)
	parts := strings.Split(strings.TrimSpace(coding), "/")
	if err != nil || len(parts) < 2 || parts[0] == "" {
		return fmt.Errorf("invalid rtpmap %q", value)
	}
	clock, err := strconv.ParseUint(parts[1], 10, 31)
	if err != nil || clock == 0 {
		return fmt.Errorf("invalid rtpmap %q", value)
	}
	f := Format{PayloadType: pt, Name: strings.ToUpper(parts[0]), ClockRate: int(clock), Channels: 1}
	if len(parts) > 2 {
		if f.Channels, err = strconv.Atoi(parts[2]); err != nil || f.Channels < 1 {
			return fmt.Errorf("invalid rtpmap %q", value)
		}
	}
	l.maps[pt] = f
	return nil
}

func parseType(text string) (uint8, error) {
	pt, err := strconv.ParseUint(text, 10, 7)
	if err != nil {
		return 0, fmt.Errorf("invalid payload type %q", text)
	}
	return uint8(pt), nil
}

// parseOrigin accepts invalid values, because only a change of the ids matters.
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
		return netip.Addr{}, fmt.Errorf("invalid connection %q", value)
	}
	host, _, _ := strings.Cut(f[2], "/") // without the multicast scope (RFC 4566 section 5.7)
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("connection address %q is not an IP", host)
	}
	return addr.Unmap(), nil
}
