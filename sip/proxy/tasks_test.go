package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/resolver"
)

func startRegistry(t *testing.T, e *endpoint.Endpoint) *Registry {
	t.Helper()
	e.Listen, e.Name = "127.0.0.1:0", "test"
	e.IsTrusted = func(netip.Addr) bool { return true }
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	b := &Registry{Endpoint: e}
	t.Cleanup(func() {
		b.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return b
}

func udp(addr string) Target {
	return Target{Proxy{Text: "sip:x", host: "x"}, resolver.Hop{Transport: "UDP", Addr: netip.MustParseAddrPort(addr)}}
}

// TestSetTrunksAfterStop checks that SetTrunks starts nothing after Stop.
func TestSetTrunksAfterStop(t *testing.T) {
	b := startRegistry(t, &endpoint.Endpoint{})
	b.Stop()
	b.SetTrunks([]media.Trunk{{Proxy: "sip:127.0.0.1:9", Register: true, Username: "u"}})
	if len(b.running) != 0 || len(b.Registrations()) != 0 {
		t.Errorf("%d tasks run", len(b.running))
	}
}

// TestProbesAreConcurrent checks that all targets are probed concurrently, so that those that are
// down do not delay others.
func TestProbesAreConcurrent(t *testing.T) {
	const targets = 8
	probed := make(chan struct{}, targets)
	all := make(chan struct{})
	var peers []Target
	for range targets {
		e := &endpoint.Endpoint{OptionsStatus: func() int {
			probed <- struct{}{}
			select { // nothing answers before all targets are probed
			case <-all:
				return 200
			case <-time.After(probeTimeout):
				return 500
			}
		}}
		peers = append(peers, udp(startRegistry(t, e).Endpoint.Addr().String()))
	}
	b := startRegistry(t, &endpoint.Endpoint{})
	up := make(chan bool, 1)
	go func() { up <- b.probeAll(t.Context(), peers) }()
	limit := time.After(probeTimeout / 2)
	for n := range targets {
		select {
		case <-probed:
		case <-limit:
			t.Fatalf("%d of %d were probed", n, targets)
		}
	}
	close(all)
	if !<-up {
		t.Error("probeAll failed")
	}
}

// TestProbeAnswers checks which responses mean that a target is up.
func TestProbeAnswers(t *testing.T) {
	for status, want := range map[int]health.Status{200: health.Up, 404: health.Up, 503: health.Down} {
		peer := startRegistry(t, &endpoint.Endpoint{OptionsStatus: func() int { return status }})
		b := startRegistry(t, &endpoint.Endpoint{})
		at := udp(peer.Endpoint.Addr().String())
		for range 2 {
			if up := b.probeTarget(t.Context(), at); up != (want == health.Up) {
				t.Errorf("%d: up %v", status, up)
			}
		}
		if got := b.Health.States(time.Now())[0]; got.Status != want || got.Reason == "" && want != health.Up {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

// TestPinRealm checks that a realm is pinned after accepted credentials, as long as a trunk names
// the proxy.
func TestPinRealm(t *testing.T) {
	b := startRegistry(t, &endpoint.Endpoint{})
	p := mustParse(t, "sip:127.0.0.1:9")
	check := func(when, set, realm string, want bool) {
		t.Helper()
		if err := b.CheckRealm(set, p, realm); (err == nil) != want {
			t.Errorf("%s: %q: %v", when, realm, err)
		}
	}
	check("at first", "", "evil", true)
	check("after an unanswered challenge", "", "trunk", true)
	check("set", "trunk", "evil", false)
	b.PinRealm(p, "trunk")
	check("pinned", "", "trunk", true)
	check("pinned", "", "evil", false)
	b.SetTrunks([]media.Trunk{{Proxy: "sip:127.0.0.1:10", Backups: []string{p.Text}}})
	check("kept", "", "evil", false)
	b.SetTrunks(nil)
	check("no longer named", "", "evil", true)
	for n := range 2 * maxProxies {
		b.PinRealm(Proxy{Text: fmt.Sprint(n)}, "x")
	}
	if n := len(b.realms); n != maxProxies {
		t.Errorf("%d are pinned, want %d", n, maxProxies)
	}
}

// TestPrune checks that the state of proxies that no trunk names is removed, unless a call could
// use it.
func TestPrune(t *testing.T) {
	b := startRegistry(t, &endpoint.Endpoint{})
	now := time.Now()
	for text, l := range map[string]location{
		"kept":  {targets: []Target{udp("192.0.2.1:5060")}, foundAt: now.Add(-2 * locationValid)},
		"young": {targets: []Target{udp("192.0.2.2:5060")}, foundAt: now},
		"old":   {targets: []Target{udp("192.0.2.3:5060")}, foundAt: now.Add(-locationValid)},
	} {
		b.storeLocation(Proxy{Text: text}, l)
		b.Health.RecordAnswer(l.targets[0].Address(), now)
	}
	b.prune(map[string]bool{"kept": true}, now)
	if _, ok := b.located["old"]; ok || len(b.located) != 2 {
		t.Errorf("located: %v", b.located)
	}
	if states := b.Health.States(now); len(states) != 2 || states[1].Address != udp("192.0.2.2:5060").Address() {
		t.Errorf("tracked: %v", states)
	}
	for n := range 2 * maxProxies {
		b.storeLocation(Proxy{Text: fmt.Sprint(n)}, location{foundAt: now.Add(time.Duration(n))})
	}
	if _, ok := b.located[fmt.Sprint(2*maxProxies-1)]; !ok || len(b.located) != maxProxies {
		t.Errorf("%d are located, want %d and the last one", len(b.located), maxProxies)
	}
}

func newRegistrar(t *testing.T, answer func(n int, requested string) (status int, headers []sip.Header)) Proxy {
	t.Helper()
	e := &endpoint.Endpoint{}
	n := 0
	e.OnOther = func(req *sip.Request, tx sip.ServerTransaction) {
		n++
		status, headers := answer(n, req.GetHeader("Expires").Value())
		e.Respond(tx, req, status, "Scripted", headers...)
	}
	return mustParse(t, "sip:"+startRegistry(t, e).Endpoint.Addr().String())
}

// TestGrantedInterval checks that a granted interval is accepted within bounds.
func TestGrantedInterval(t *testing.T) {
	expires := func(v string) []sip.Header { return []sip.Header{sip.NewHeader("Expires", v)} }
	for name, row := range map[string]struct {
		answer func(n int, requested string) (int, []sip.Header)
		want   time.Duration // 0 means that an error is expected
	}{
		"as requested":    {func(int, string) (int, []sip.Header) { return 200, nil }, registerInterval},
		"less":            {func(int, string) (int, []sip.Header) { return 200, expires("2") }, 2 * time.Second},
		"more than a day": {func(int, string) (int, []sip.Header) { return 200, expires("4294967295") }, maxInterval},
		"zero":            {func(int, string) (int, []sip.Header) { return 200, expires("0") }, 0},
		"too brief": {func(n int, requested string) (int, []sip.Header) {
			if n == 1 {
				return 423, []sip.Header{sip.NewHeader("Min-Expires", "7200")}
			}
			return 200, expires(requested)
		}, 2 * time.Hour},
		"minimum of a century": {func(int, string) (int, []sip.Header) {
			return 423, []sip.Header{sip.NewHeader("Min-Expires", "4294967295")}
		}, 0},
		"minimum not longer": {func(int, string) (int, []sip.Header) {
			return 423, []sip.Header{sip.NewHeader("Min-Expires", "3600")}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newRegistrar(t, row.answer)
			b := startRegistry(t, &endpoint.Endpoint{})
			r := newRegistration(b, p, task{proxy: p.Text, register: true, username: "u"})
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			got, err := r.register(ctx, r.interval)
			if got != row.want || (err == nil) != (row.want > 0) || r.registered != (row.want > 0) {
				t.Errorf("%v, %v, registered %v; want %v", got, err, r.registered, row.want)
			}
			if wait := refreshAfter(got); err == nil && (wait < time.Second || wait > got) {
				t.Errorf("refreshed in %v", wait)
			}
		})
	}
}

// TestRegisterPins checks that the realm accepted by the registrar is pinned.
func TestRegisterPins(t *testing.T) {
	challenge := []sip.Header{sip.NewHeader("WWW-Authenticate", `Digest realm="trunk", nonce="n"`)}
	p := newRegistrar(t, func(n int, _ string) (int, []sip.Header) {
		if n == 1 {
			return 401, challenge
		}
		return 200, nil
	})
	b := startRegistry(t, &endpoint.Endpoint{})
	b.PinRealm(p, "evil") // a challenge by a callee
	r := newRegistration(b, p, task{proxy: p.Text, register: true, username: "u", password: "p"})
	if _, err := r.register(t.Context(), r.interval); err != nil {
		t.Fatal(err)
	}
	if b.CheckRealm("", p, "evil") == nil || b.CheckRealm("", p, "trunk") != nil {
		t.Errorf("pinned: %v", b.realms)
	}
}
