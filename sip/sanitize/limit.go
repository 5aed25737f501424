package sanitize

import (
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/connlimit"
)

const (
	perSecond = 50   // messages per second of one address
	burst     = 100  // messages that may arrive at once
	addresses = 4096 // addresses that are remembered: between this number and twice as many
	exemptFor = 10 * time.Minute
)

// A Limit limits the rate of each source address: 50 messages per second, bursts
// of 100. Addresses that were sent a message lately are exempt. It remembers
// 4,096 to 8,192 addresses, so that forged ones take little memory. An IPv6
// address counts as its /64. The zero value is ready; its methods are safe for
// concurrent use.
type Limit struct {
	mu                sync.Mutex
	current, previous map[netip.Addr]bucket // previous is dropped when current is full
	exempt            [2]map[netip.Addr]struct{}
	rotatedAt         time.Time // when exempt was rotated
}

type bucket struct {
	left float64
	at   time.Time
}

// Allow reports whether a message from addr is within the limit.
func (l *Limit) Allow(addr netip.Addr, now time.Time) bool {
	addr = connlimit.Network(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, exempt := range l.exempt {
		if _, ok := exempt[addr]; ok {
			return true
		}
	}
	b, seen := l.current[addr]
	if !seen {
		if b, seen = l.previous[addr]; !seen {
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
	if l.current == nil || len(l.current) >= addresses {
		l.current, l.previous = map[netip.Addr]bucket{}, l.current
	}
	l.current[addr] = b
	return ok
}

// Exempt exempts an address for at least 10 minutes.
func (l *Limit) Exempt(addr netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exempt[0] == nil || now.Sub(l.rotatedAt) > exemptFor || len(l.exempt[0]) >= addresses {
		l.exempt[1], l.exempt[0], l.rotatedAt = l.exempt[0], map[netip.Addr]struct{}{}, now
	}
	l.exempt[0][connlimit.Network(addr)] = struct{}{}
}

// IsExempt reports whether an address is exempt.
func (l *Limit) IsExempt(addr netip.Addr) bool {
	addr = connlimit.Network(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, current := l.exempt[0][addr]
	_, previous := l.exempt[1][addr]
	return current || previous
}
