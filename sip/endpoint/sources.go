package endpoint

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/parley-voice/parley/sip/sanitize"
)

// maxSources bounds the learned addresses of a call.
const maxSources = 32

// maxSourceNames bounds the names resolved for a call.
const maxSourceNames = 8

// Sources decide, for each call, which addresses its messages may come from and
// which addresses it may send to. They are the addresses of the call's carrier:
//
//   - where the INVITE was sent, at each proxy;
//   - the proxies of the trunk, as IsProxy reports;
//   - the networks that an operator allows;
//   - the hosts of Record-Route, or else of Contact, in accepted messages;
//   - the first address that answers an INVITE, if it differs from the INVITE's.
//
// The methods are safe for concurrent use. The exported fields must not change
// after the first use.
type Sources struct {
	// IsProxy reports whether an address is one of the trunk's proxies; nil means
	// none.
	IsProxy func(netip.Addr) bool
	// Networks are further allowed sources.
	Networks []netip.Prefix

	mu         sync.Mutex
	trunk      netip.Addr   // destination of the last INVITE
	addrs      []netip.Addr // all other accepted addresses
	names      []string     // names that are resolved or being resolved
	hasRoute   bool         // the peer sent a Record-Route
	isAnswered bool         // the last INVITE was answered
	rejected   int          // number of messages from other addresses
}

// AddTarget adds the destination of an INVITE.
func (s *Sources) AddTarget(to netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trunk, s.isAnswered = to.Unmap(), false
	s.add(s.trunk)
}

// Add adds an address of a host name that AddHosts returned. It ignores addresses
// that Parley must not reach, such as loopback.
func (s *Sources) Add(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sanitize.Reachable(a, s.trunk) {
		s.add(a.Unmap().WithZone(""))
	}
}

// AddHosts adds the hosts of Record-Route and Contact of an accepted message. It
// returns the names that the caller must resolve and Add.
func (s *Sources) AddHosts(routes []string, contact string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasRoute = s.hasRoute || len(routes) > 0
	if !s.hasRoute && contact != "" {
		routes = []string{contact}
	}
	for _, host := range routes {
		if a, ok := parseHost(host); ok {
			if sanitize.Reachable(a, s.trunk) {
				s.add(a.WithZone(""))
			}
		} else if len(s.names) < maxSourceNames && !slices.Contains(s.names, host) {
			s.names = append(s.names, host)
			names = append(names, host)
		}
	}
	return names
}

// ForgetName makes AddHosts return a name again, after it could not be resolved.
func (s *Sources) ForgetName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == name })
}

// add must be called with s.mu held.
func (s *Sources) add(a netip.Addr) {
	if len(s.addrs) < maxSources && !slices.Contains(s.addrs, a) {
		s.addrs = append(s.addrs, a)
	}
}

// AcceptsRequest reports whether requests may come from an address.
func (s *Sources) AcceptsRequest(from netip.Addr) bool {
	return s.contains(from) || s.reject()
}

// AcceptsResponse reports whether a response may come from an address. The first
// response to an INVITE may come from any address, which is accepted from then
// on, unless it is a 2xx: that would connect the call.
func (s *Sources) AcceptsResponse(from netip.Addr, status int) bool {
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
func (s *Sources) MaySendTo(to netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sanitize.Reachable(to, s.trunk)
}

// Rejected returns the number of rejected messages.
func (s *Sources) Rejected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

func (s *Sources) reject() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected++
	return false
}

func (s *Sources) contains(from netip.Addr) bool {
	from = from.Unmap().WithZone("")
	s.mu.Lock()
	learned := slices.Contains(s.addrs, from)
	s.mu.Unlock()
	return learned || slices.ContainsFunc(s.Networks, func(p netip.Prefix) bool { return p.Contains(from) }) ||
		s.IsProxy != nil && s.IsProxy(from)
}

// parseHost parses the host of a URI as an address. ok is false for a name.
func parseHost(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return a.Unmap(), err == nil
}
