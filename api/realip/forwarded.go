// Package realip finds the client address behind trusted reverse proxies, for limits,
// logs and audit entries.
package realip

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Handler replaces the remote address of requests from trusted proxies by the one in
// X-Forwarded-For. The header of other clients is ignored.
func Handler(trusted []netip.Prefix, next http.Handler) http.Handler {
	if len(trusted) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from, ok := origin(trusted, r.RemoteAddr, r.Header.Values("X-Forwarded-For")); ok {
			behind := *r // a shallow copy is enough
			behind.RemoteAddr = from
			r = &behind
		}
		next.ServeHTTP(w, r)
	})
}

// origin returns the last address in the chain that is not a trusted proxy, or the first
// address if all are. Earlier entries may be forged.
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

// address parses an entry of X-Forwarded-For, with or without a port.
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

// Network groups addresses for rate limits: one IPv4 address, or one IPv6 /64.
func Network(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // requests without an address share one group
	}
	return p
}
