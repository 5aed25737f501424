package endpoint

import (
	"fmt"
	"net/netip"
)

// CheckReachable returns an error if an endpoint that listens on one address and
// gives peers the address public cannot exchange messages with to: the family of
// to must be that of public, and the listening socket must support it.
func CheckReachable(listen, public, to netip.Addr) error {
	listen, public, to = listen.Unmap(), public.Unmap(), to.Unmap()
	if !public.IsValid() {
		public = listen
	}
	if !listen.IsValid() || to.Is4() == public.Is4() && (to.Is4() == listen.Is4() || listen == netip.IPv6Unspecified()) {
		return nil
	}
	return fmt.Errorf("%v is an %s address, and SIP uses %s only: it listens on %v with the public address %v",
		to, family(to), family(public), listen, public)
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// CheckReachable returns an error if the endpoint cannot reach an address.
func (e *Endpoint) CheckReachable(to netip.Addr) error {
	return CheckReachable(e.local.listen.Addr(), e.local.public.Addr(), to)
}
