package proxy

import (
	"time"

	"github.com/parley-voice/parley/sip/health"
)

const (
	// maxProxies bounds the remembered proxies.
	maxProxies = 1024
	// nameKeptFor is how long a TLS name stays expected without a new lookup:
	// longer than calls last.
	nameKeptFor = 24 * time.Hour
)

// storeLocation stores the location of a proxy. If there are too many, it drops the
// oldest, which is looked up again when needed.
func (reg *Registry) storeLocation(p Proxy, at location) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	if reg.located == nil {
		reg.located = map[string]location{}
	}
	if _, ok := reg.located[p.Text]; !ok && len(reg.located) >= maxProxies {
		first := ""
		for text, l := range reg.located {
			if first == "" || l.foundAt.Before(reg.located[first].foundAt) {
				first = text
			}
		}
		delete(reg.located, first)
	}
	reg.located[p.Text] = at
}

// prune removes the state of proxies that are not named. A call may be on its way
// to one, so it keeps what such a call could use.
func (reg *Registry) prune(proxies map[string]bool, now time.Time) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for text := range reg.realms {
		if !proxies[text] {
			delete(reg.realms, text)
		}
	}
	for text, l := range reg.located {
		if !proxies[text] && now.Sub(l.foundAt) >= locationValid {
			delete(reg.located, text)
		}
	}
	reg.pruneAddresses(now)
}

// pruneAddresses removes the health and TLS names of addresses that belong to no
// remembered proxy. The mutex must be held.
func (reg *Registry) pruneAddresses(now time.Time) {
	keep := map[health.Address]bool{}
	proven := map[string]bool{}
	for _, l := range reg.located {
		for _, at := range l.targets {
			keep[at.Address()] = true
			proven[at.Hop.Addr.String()] = true
		}
	}
	reg.Health.Prune(keep, now)
	reg.Endpoint.ForgetNames(proven, now.Add(-nameKeptFor))
}
