// Package connlimit limits the number of open connections, in total and per network.
package connlimit

import (
	"net/netip"
	"sync"
)

// Limiter counts connections. Its limits must not change after the first use.
type Limiter struct {
	MaxTotal      int
	MaxPerNetwork int // limit for one network: an IPv4 address or an IPv6 /64

	mu   sync.Mutex
	all  int
	from map[netip.Addr]int
}

// Acquire counts a connection from a. It returns false, and counts nothing, if a limit is reached. Call Release once
// for each connection that was counted.
func (l *Limiter) Acquire(a netip.Addr) bool {
	a = Network(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.MaxTotal || l.from[a] >= l.MaxPerNetwork {
		return false
	}
	if l.from == nil {
		l.from = map[netip.Addr]int{}
	}
	l.all++
	l.from[a]++
	return true
}

// Release removes one connection from a from the counts.
func (l *Limiter) Release(a netip.Addr) {
	a = Network(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.from[a]--; l.from[a] == 0 {
		delete(l.from, a)
	}
}

// Counts returns the number of connections, and the number of networks that have any.
func (l *Limiter) Counts() (all, networks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all, len(l.from)
}

// Network returns the address under which connections from a are counted. This is a for IPv4, and the /64 of a for
// IPv6, because one subscriber may use a whole /64.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
