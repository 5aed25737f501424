// Package connlimit limits the number of open connections, in total and per
// network.
package connlimit

import (
	"net/netip"
	"sync"
)

// A Limiter counts connections. Its limits must not change after first use.
type Limiter struct {
	MaxTotal      int
	MaxPerNetwork int // a network is an IPv4 address or an IPv6 /64

	mu   sync.Mutex
	all  int
	from map[netip.Addr]int
}

// Acquire returns false if a limit is reached. Each success needs one Release.
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

// Release frees one connection of a.
func (l *Limiter) Release(a netip.Addr) {
	a = Network(a)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.from[a]--; l.from[a] == 0 {
		delete(l.from, a)
	}
}

// Counts returns the number of connections and of networks that have any.
func (l *Limiter) Counts() (all, networks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all, len(l.from)
}

// Network returns the address that a is counted under: itself, or its IPv6
// /64, because one subscriber may use all of it.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
