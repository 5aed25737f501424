package proxy

import "fmt"

// A pin is the realm that a proxy must use.
type pin struct {
	realm   string
	unsaved bool // the realm has not been stored yet
}

// CheckRealm returns an error if a challenge's realm is not the realm set for the
// trunk or, without that setting, the pinned one. Without either, any realm is accepted.
// A challenge does not pin its realm, because it may come from the callee, through
// the proxy. For the same reason an attempt must answer challenges of only one
// realm.
func (reg *Registry) CheckRealm(set string, p Proxy, realm string) error {
	want := set
	if want == "" {
		reg.mu.Lock()
		want = reg.realms[p.Text].realm
		reg.mu.Unlock()
	}
	if want == "" || realm == want {
		return nil
	}
	return fmt.Errorf(
		"challenge from foreign realm %q: the trunk's realm is %q; if the carrier changed its realm, set realm of the trunk",
		realm,
		want,
	)
}

// PinRealm records that a proxy accepted credentials for a realm. A call cannot
// change a pinned realm; a registration can, since no callee can take part in it.
// The pin lasts until SetTrunks is called without a trunk of this proxy.
func (reg *Registry) PinRealm(p Proxy, realm string) {
	if reg.pinRealm(p.Text, pin{realm, true}) && reg.OnPinned != nil {
		reg.OnPinned()
	}
}

// pinRealm reports whether the pin changed.
func (reg *Registry) pinRealm(proxy string, next pin) bool {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	last, ok := reg.realms[proxy]
	switch {
	case ok && last.realm == next.realm:
		if !next.unsaved {
			reg.realms[proxy] = next
		}
		return false
	case !next.unsaved && last.unsaved: // the pinned realm is newer than the stored one
		return false
	case !ok && len(reg.realms) >= maxProxies:
		return false // too many proxies: this one gets no pinned realm
	}
	if reg.realms == nil {
		reg.realms = map[string]pin{}
	}
	reg.realms[proxy] = next
	return true
}

// Realms returns the pinned realms that are not stored yet, by proxy.
func (reg *Registry) Realms() map[string]string {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	unsaved := map[string]string{}
	for proxy, p := range reg.realms {
		if p.unsaved {
			unsaved[proxy] = p.realm
		}
	}
	return unsaved
}

// RestoreRealms pins stored realms, by proxy. It does not replace a realm that is
// pinned and not stored yet.
func (reg *Registry) RestoreRealms(realms map[string]string) {
	for proxy, realm := range realms {
		reg.pinRealm(proxy, pin{realm: realm})
	}
}
