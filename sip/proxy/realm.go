package proxy

// Ours says whether a realm may be that of a trunk's proxy: the one set, else
// the one pinned, and where there is neither, any. A challenge that the proxy
// passed on may come from whoever was called; so nothing is pinned by it, and
// who asks must answer one realm only for each call.
func (b *Book) Ours(set string, p Proxy, realm string) bool {
	if set != "" {
		return realm == set
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	pinned, ok := b.realms[p.Text]
	return !ok || realm == pinned
}

// Pin notes that credentials for a realm were taken by a proxy. The last realm
// counts: after a call it is the one pinned before, if there was any, and after
// a registration the registrar's, whom no phone can stand in for. It is pinned
// until Keep is called without a trunk of this proxy.
func (b *Book) Pin(p Proxy, realm string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.realms == nil {
		b.realms = map[string]string{}
	}
	if _, ok := b.realms[p.Text]; !ok && len(b.realms) >= maxProxies {
		return // it stays tentative
	}
	b.realms[p.Text] = realm
}
