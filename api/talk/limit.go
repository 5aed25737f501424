package talk

import (
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/forwarded"
)

// How many calls visitors may begin.
const (
	perAddress = 10 // a minute, of one address
	perMinute  = 60 // of all together
)

// A limiter counts what addresses did within the last minute, all of it forgotten
// when the minute is over.
type limiter struct {
	mu    sync.Mutex
	since time.Time
	all   int
	by    map[netip.Prefix]int
}

// allow takes one of the calls of an address, and says how long to wait where
// there is none.
func (l *limiter) allow(from netip.Addr, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil || now.Sub(l.since) >= time.Minute {
		l.since, l.all, l.by = now, 0, map[netip.Prefix]int{}
	}
	at := forwarded.Network(from)
	if l.all >= perMinute || l.by[at] >= perAddress {
		return l.since.Add(time.Minute).Sub(now), false
	}
	l.all++
	l.by[at]++
	return 0, true
}
