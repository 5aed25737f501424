package turn

import (
	"errors"
	"net"
	"net/netip"
)

var errPeer = errors.New("the peer is none of ours")

// peers are the addresses that are led to. They do not change.
type peers struct {
	real map[netip.AddrPort]netip.AddrPort // where what browsers know it by really is
	told map[netip.AddrPort]netip.AddrPort // and back
	ips  map[netip.Addr]bool
}

// newPeers has the gateway be reached where it really is: few networks lead a
// packet to a public address of their own back inside.
func newPeers(c Config) *peers {
	p := &peers{map[netip.AddrPort]netip.AddrPort{}, map[netip.AddrPort]netip.AddrPort{}, map[netip.Addr]bool{}}
	for _, a := range c.Peers {
		p.add(a, a)
	}
	p.add(netip.AddrPortFrom(c.told(), c.Gateway.Port()), c.Gateway)
	return p
}

func (p *peers) add(told, really netip.AddrPort) {
	told, really = unmap(told), unmap(really)
	if really.Addr().IsUnspecified() { // it listens everywhere, so here
		here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if really.Addr().Is6() && told.Addr().Is6() {
			here = netip.IPv6Loopback()
		}
		really = netip.AddrPortFrom(here, really.Port())
	}
	p.real[told], p.told[told], p.told[really] = really, told, told
	p.ips[told.Addr()] = true
}

// to is where packets for an address go; none but a peer's does.
func (p *peers) to(told netip.AddrPort) (netip.AddrPort, bool) {
	a, ok := p.real[unmap(told)]
	return a, ok
}

// from is what browsers know the sender of a packet by.
func (p *peers) from(really netip.AddrPort) (netip.AddrPort, bool) {
	a, ok := p.told[unmap(really)]
	return a, ok
}

// permit implements turn.PermissionHandler: permissions are of addresses without
// ports (RFC 8656, 9).
func (p *peers) permit(_ net.Addr, ip net.IP) bool {
	a, ok := netip.AddrFromSlice(ip)
	return ok && p.ips[a.Unmap()]
}

// unmap takes ::ffff:a.b.c.d for a.b.c.d, as the kernel does.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
