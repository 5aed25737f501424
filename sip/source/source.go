// Package source decides, for each call, which addresses its messages may come
// from and which addresses it may send to.
package source

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/parley-voice/parley/sip/sanitize"
)

// maxAddrs bounds the learned addresses of a call.
const maxAddrs = 32

// maxNames bounds the names resolved for a call.
const maxNames = 8

// A Set holds the addresses of one call's carrier:
//
//   - where the INVITE was sent, at each proxy;
//   - the proxies of the trunk, as IsProxy reports;
//   - the networks that an operator allows;
//   - the hosts of Record-Route, or else of Contact, in accepted messages;
//   - the first address that answers an INVITE, if it differs from the INVITE's.
//
// Its methods are safe for concurrent use. The exported fields must not change
// after the first use.
type Set struct {
	// IsProxy reports whether an address is one of the trunk's proxies; nil means
	// none.
	IsProxy func(netip.Addr) bool
	// Networks are further allowed sources.
	Networks []netip.Prefix

	mu         sync.Mutex
	trunk      netip.Addr   // destination of the last INVITE
	addrs      []netip.Addr // all others
	names      []string     // resolved or being resolved
	hasRoute   bool         // the peer sent a Record-Route
	isAnswered bool         // the last INVITE
	rejected   int          // messages from other addresses
}

// AddTarget adds the destination of an INVITE.
func (s *Set) AddTarget(to netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trunk, s.isAnswered = to.Unmap(), false
	s.add(s.trunk)
}

// Add adds an address that the peer named.
func (s *Set) Add(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sanitize.Reachable(a, s.trunk) {
		s.add(a.Unmap().WithZone(""))
	}
}

// AddHosts adds the hosts of Record-Route and Contact of an accepted message. It
// returns the names that the caller must resolve and Add.
func (s *Set) AddHosts(routes []string, contact string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasRoute = s.hasRoute || len(routes) > 0
	if !s.hasRoute && contact != "" {
		routes = []string{contact}
	}
	for _, host := range routes {
		if a, ok := ParseHost(host); ok {
			if sanitize.Reachable(a, s.trunk) {
				s.add(a.WithZone(""))
			}
		} else if len(s.names) < maxNames && !slices.Contains(s.names, host) {
			s.names = append(s.names, host)
			names = append(names, host)
		}
	}
	return names
}

// ForgetName makes AddHosts return a name again, after it could not be resolved.
func (s *Set) ForgetName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == name })
}

// add must be called with s.mu held.
func (s *Set) add(a netip.Addr) {
	if len(s.addrs) < maxAddrs && !slices.Contains(s.addrs, a) {
		s.addrs = append(s.addrs, a)
	}
}

// AcceptsRequest reports whether requests may come from an address.
func (s *Set) AcceptsRequest(from netip.Addr) bool {
	return s.contains(from) || s.reject()
}

// AcceptsResponse reports whether a response may come from an address. The first
// response to an INVITE may come from any address, which is accepted from then
// on, unless it is a 2xx: that would connect the call.
func (s *Set) AcceptsResponse(from netip.Addr, status int) bool {
	accepted := s.contains(from)
	s.mu.Lock()
	first := !accepted && !s.isAnswered && status/100 != 2
	if first {
		s.add(from.Unmap().WithZone(""))
	}
	s.isAnswered = s.isAnswered || accepted || first
	s.mu.Unlock()
	return accepted || first || s.reject()
}

// MaySendTo reports whether a request may be sent to an address.
func (s *Set) MaySendTo(to netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sanitize.Reachable(to, s.trunk)
}

// Rejected returns the number of rejected messages.
func (s *Set) Rejected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

func (s *Set) reject() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected++
	return false
}

func (s *Set) contains(from netip.Addr) bool {
	from = from.Unmap().WithZone("")
	s.mu.Lock()
	learned := slices.Contains(s.addrs, from)
	s.mu.Unlock()
	return learned || slices.ContainsFunc(s.Networks, func(p netip.Prefix) bool { return p.Contains(from) }) ||
		s.IsProxy != nil && s.IsProxy(from)
}

// ParseHost parses the host of a URI as an address. ok is false for a name.
func ParseHost(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return a.Unmap(), err == nil
}
