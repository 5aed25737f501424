package turnserver

import (
	"errors"
	"net"
	"net/netip"
)

var errPeer = errors.New("the peer is not allowed")

// peers holds the addresses to which packets may be relayed. It does not change.
type peers struct {
	toReal   map[netip.AddrPort]netip.AddrPort // from public to actual address
	toPublic map[netip.AddrPort]netip.AddrPort // from actual to public address
	ips      map[netip.Addr]bool
}

// newPeers maps the gateway's public address to its actual address. Few NATs let a host inside send to the NAT's own
// public address.
func newPeers(c Config) *peers {
	p := &peers{map[netip.AddrPort]netip.AddrPort{}, map[netip.AddrPort]netip.AddrPort{}, map[netip.Addr]bool{}}
	for _, a := range c.Peers {
		p.add(a, a)
	}
	p.add(netip.AddrPortFrom(c.publicAddr(), c.Gateway.Port()), c.Gateway)
	return p
}

func (p *peers) add(public, actual netip.AddrPort) {
	public, actual = unmap(public), unmap(actual)
	if actual.Addr().IsUnspecified() { // the gateway listens on all local addresses
		here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if actual.Addr().Is6() && public.Addr().Is6() {
			here = netip.IPv6Loopback()
		}
		actual = netip.AddrPortFrom(here, actual.Port())
	}
	p.toReal[public], p.toPublic[public], p.toPublic[actual] = actual, public, public
	p.ips[public.Addr()] = true
}

func (p *peers) to(public netip.AddrPort) (netip.AddrPort, bool) {
	a, ok := p.toReal[unmap(public)]
	return a, ok
}

func (p *peers) from(actual netip.AddrPort) (netip.AddrPort, bool) {
	a, ok := p.toPublic[unmap(actual)]
	return a, ok
}

// permit implements turn.PermissionHandler. A permission covers all ports of an IP address (RFC 8656 section 9).
func (p *peers) permit(_ net.Addr, ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && p.ips[a.Unmap()]
}

// unmap converts ::ffff:a.b.c.d to a.b.c.d, as the kernel does.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
