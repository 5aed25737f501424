package proxy

import (
	"time"

	"github.com/parley-voice/parley/sip/health"
)

const (
	// maxProxies bounds those that something is remembered of.
	maxProxies = 1024
	// proveFor is how long a peer over TLS has to prove a name that was not
	// expected again: longer than calls last.
	proveFor = 24 * time.Hour
)

// note remembers where a proxy is. Where too many are remembered, the one that
// was found first is forgotten: it is looked for again when it is needed.
func (b *Book) note(p Proxy, at located) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.located == nil {
		b.located = map[string]located{}
	}
	if _, ok := b.located[p.Text]; !ok && len(b.located) >= maxProxies {
		first := ""
		for text, l := range b.located {
			if first == "" || l.at.Before(b.located[first].at) {
				first = text
			}
		}
		delete(b.located, first)
	}
	b.located[p.Text] = at
}

// prune forgets what is known of proxies that are not named. A call may be on
// its way to one all the same: so what it could use still stays.
func (b *Book) prune(named map[string]bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for text := range b.realms {
		if !named[text] {
			delete(b.realms, text)
		}
	}
	for text, l := range b.located {
		if !named[text] && now.Sub(l.at) >= locateLast {
			delete(b.located, text)
		}
	}
	b.forget(now)
}

// forget has others forget the addresses of no proxy that is remembered. It
// needs b.mu.
func (b *Book) forget(now time.Time) {
	kept := map[health.Address]bool{}
	proven := map[string]bool{}
	for _, l := range b.located {
		for _, at := range l.places {
			kept[at.Address()] = true
			proven[at.Hop.Addr.String()] = true
		}
	}
	b.Health.Forget(kept, now)
	b.Endpoint.Unexpect(proven, now.Add(-proveFor))
}
