package guard

import (
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/gate"
)

const (
	perSecond = 50   // messages of one address
	burst     = 100  // of them at once
	addresses = 4096 // remembered at least; twice as many at most
	knownFor  = 10 * time.Minute
)

// A Limit bounds what each source address may send: 50 messages a second, and
// 100 at once. Addresses that we have written to lately are not bounded. It
// remembers the last 4,096 addresses at least and twice as many at most, so
// that no flood of made-up ones takes memory. An IPv6 address counts as its
// /64. The zero value is ready; it may be used by any goroutine.
type Limit struct {
	mu         sync.Mutex
	young, old map[netip.Addr]bucket // the old are forgotten when the young are many
	known      [2]map[netip.Addr]struct{}
	turned     time.Time // when known was
}

// A bucket is how many messages an address may send at a time.
type bucket struct {
	left float64
	at   time.Time
}

// Allow says whether a message of addr is taken now.
func (l *Limit) Allow(addr netip.Addr, now time.Time) bool {
	addr = gate.Network(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.known {
		if _, ok := known[addr]; ok {
			return true
		}
	}
	b, seen := l.young[addr]
	if !seen {
		if b, seen = l.old[addr]; !seen {
			b = bucket{burst, now}
		}
	}
	if d := now.Sub(b.at); d > 0 {
		b.left, b.at = min(burst, b.left+d.Seconds()*perSecond), now
	}
	ok := b.left >= 1
	if ok {
		b.left--
	}
	if l.young == nil || len(l.young) >= addresses {
		l.young, l.old = map[netip.Addr]bucket{}, l.young
	}
	l.young[addr] = b
	return ok
}

// Know has no bound for an address that we write to, for the 10 minutes to
// come at least.
func (l *Limit) Know(addr netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[0] == nil || now.Sub(l.turned) > knownFor || len(l.known[0]) >= addresses {
		l.known[1], l.known[0], l.turned = l.known[0], map[netip.Addr]struct{}{}, now
	}
	l.known[0][gate.Network(addr)] = struct{}{}
}

// Knows says whether addr is one that we have written to lately.
func (l *Limit) Knows(addr netip.Addr) bool {
	addr = gate.Network(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, lately := l.known[0][addr]
	_, before := l.known[1][addr]
	return lately || before
}
