package talkpage

import (
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/realip"
)

// Rate limits of visitors.
const (
	perAddress = 10 // calls per minute and address
	perMinute  = 60 // calls per minute in all
)

type limiter struct {
	mu    sync.Mutex
	since time.Time
	all   int
	by    map[netip.Prefix]int
}

// allow counts a call from an address, or returns how long to wait.
func (l *limiter) allow(from netip.Addr, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil || now.Sub(l.since) >= time.Minute {
		l.since, l.all, l.by = now, 0, map[netip.Prefix]int{}
	}
	at := realip.Network(from)
	if l.all >= perMinute || l.by[at] >= perAddress {
		return l.since.Add(time.Minute).Sub(now), false
	}
	l.all++
	l.by[at]++
	return 0, true
}
