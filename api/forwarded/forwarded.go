// Package forwarded tells who asks where proxies of ours stand between: what is
// counted, kept or logged by address is by theirs, not by the proxy's.
package forwarded

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Handler has requests that come from trusted proxies seem to come from whom these
// pass on, by X-Forwarded-For. Of others nothing that they say of it is believed.
func Handler(trusted []netip.Prefix, next http.Handler) http.Handler {
	if len(trusted) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from, ok := origin(trusted, r.RemoteAddr, r.Header.Values("X-Forwarded-For")); ok {
			behind := *r // shares all but the address
			behind.RemoteAddr = from
			r = &behind
		}
		next.ServeHTTP(w, r)
	})
}

// origin is the last address on the way that is no trusted proxy's, or the first of
// all where each is one. What stands before that anybody may have written.
func origin(trusted []netip.Prefix, remote string, passed []string) (from string, ok bool) {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil || !within(trusted, peer.Addr()) {
		return "", false
	}
	var at netip.Addr
	hops := strings.Split(strings.Join(passed, ","), ",")
	for _, hop := range slices.Backward(hops) {
		a, fits := address(hop)
		if !fits {
			break
		}
		if at = a; !within(trusted, a) {
			break
		}
	}
	if !at.IsValid() {
		return "", false
	}
	return netip.AddrPortFrom(at, 0).String(), true
}

// address reads one of X-Forwarded-For, with a port or without.
func address(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if with, err := netip.ParseAddrPort(s); err == nil {
		return with.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap(), err == nil
}

func within(all []netip.Prefix, a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Network is what one who asks may have addresses of: a single one of IPv4, 64 bits of
// IPv6. Tries are counted by it.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: all of those share one
	}
	return p
}
