package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// withWeb adds the settings of web calls and pages.
func withWeb(all map[string]Setting) map[string]Setting {
	maps.Copy(all, map[string]Setting{
		"PARLEY_WEBRTC_UDP_PORT": {"a port, 0 for a free one, or off", setPort(func(c *Config) *int { return &c.WebRTC.UDP })},
		"PARLEY_WEBRTC_TCP_PORT": {"a port, 0 for a free one, or off", setPort(func(c *Config) *int { return &c.WebRTC.TCP })},
		"PARLEY_STUN_URLS": {
			"stun:HOST:PORT, comma-separated",
			setICE(func(c *Config) *[]string { return &c.WebRTC.STUN }, "stun:", "stuns:"),
		},
		"PARLEY_TURN_URLS": {
			"turn:HOST:PORT?transport=udp or turns:…, comma-separated",
			setICE(func(c *Config) *[]string { return &c.WebRTC.TURN }, "turn:", "turns:"),
		},
		"PARLEY_TURN_PORT":        {"a port, 0 for a free one, or off", setPort(func(c *Config) *int { return &c.WebRTC.Relay })},
		"PARLEY_TURN_RELAY_PORTS": {"FIRST-LAST, within 1024-65535", setPorts(func(c *Config) *[2]int { return &c.WebRTC.RelayPorts })},
		"PARLEY_TURN_PEERS":       {"IP:PORT, comma-separated", setPeers},
		"PARLEY_TALK_AGENTS":      {"ORGANIZATION/AGENT, comma-separated, each name of an agent once", setTalk},
		"PARLEY_TRUSTED_PROXIES":  {"an address or ADDRESS/BITS, comma-separated", setProxies},
		"PARLEY_DASHBOARD":        {"on or off", setSwitch(func(c *Config) *bool { return &c.Dashboard })},
	})
	return all
}

// mapped is the length in bits of the prefix ::ffff:0:0/96 of IPv4-mapped IPv6 addresses.
const mapped = 96

func setProxies(c *Config, v string) error {
	c.Proxies = nil
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		p, err := netip.ParsePrefix(part)
		if a, single := netip.ParseAddr(part); single == nil {
			p, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
		}
		if p.Addr().Is4In6() && p.Bits() >= mapped {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
		}
		if err != nil || p.Bits() == 0 {
			return fmt.Errorf("%q is not an address, or matches every address", part)
		}
		c.Proxies = append(c.Proxies, p.Masked())
	}
	return nil
}

func setPeers(c *Config, v string) error {
	c.WebRTC.RelayPeers = nil
	for part := range strings.SplitSeq(v, ",") {
		a, err := netip.ParseAddrPort(strings.TrimSpace(part))
		if ip := a.Addr().Unmap(); err != nil || a.Port() == 0 || !ip.IsGlobalUnicast() {
			return fmt.Errorf("%q is not the address of a node", part)
		}
		c.WebRTC.RelayPeers = append(c.WebRTC.RelayPeers, a)
	}
	return nil
}

func setTalk(c *Config, v string) error {
	c.Talk = nil
	for part := range strings.SplitSeq(v, ",") {
		org, name, ok := strings.Cut(strings.TrimSpace(part), "/")
		if !ok || org == "" || name == "" {
			return fmt.Errorf("%q is not ORGANIZATION/AGENT", part)
		}
		if slices.ContainsFunc(c.Talk, func(a TalkAgent) bool { return a.Name == name }) {
			return fmt.Errorf("%q is named twice", name)
		}
		c.Talk = append(c.Talk, TalkAgent{org, name})
	}
	return nil
}

// MediaAddrs returns the address that media sockets bind and the public address. The public address is invalid if
// both are the same.
func (c Config) MediaAddrs() (bind, public netip.Addr, err error) {
	host, _, err := net.SplitHostPort(c.SIPAddr)
	if err != nil {
		return bind, public, fmt.Errorf("PARLEY_SIP_ADDR: %w", err)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if bind, err = netip.ParseAddr(host); err != nil {
		return bind, public, fmt.Errorf("PARLEY_SIP_ADDR: %q is not an IP address; accepted: IP:port", host)
	}
	if bind.IsUnspecified() && !c.MediaIP.IsValid() {
		return bind, public, errors.New(
			"PARLEY_MEDIA_IP is required because PARLEY_SIP_ADDR listens on all addresses; accepted: the IP address that carriers reach",
		)
	}
	return bind, c.MediaIP, nil
}
