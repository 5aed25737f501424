// Package gate bounds how many may be inside at a time: in all, and from one
// network.
package gate

import (
	"net/netip"
	"sync"
)

// A Gate counts who is inside. Its bounds are set once.
type Gate struct {
	Most int // in all
	Each int // from one network

	mu   sync.Mutex
	all  int
	from map[netip.Addr]int
}

// Enter is false where there are too many inside. Who has entered leaves once.
func (g *Gate) Enter(a netip.Addr) bool {
	a = Network(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= g.Most || g.from[a] >= g.Each {
		return false
	}
	if g.from == nil {
		g.from = map[netip.Addr]int{}
	}
	g.all++
	g.from[a]++
	return true
}

// Leave lets another in.
func (g *Gate) Leave(a netip.Addr) {
	a = Network(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.from[a]--; g.from[a] == 0 {
		delete(g.from, a)
	}
}

// Inside is how many are inside, and from how many networks.
func (g *Gate) Inside() (all, networks int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all, len(g.from)
}

// Network is what an address is counted as: itself, or its /64 of IPv6, which one
// party may have all of.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
