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
	"github.com/parley-voice/parley/sip/locate"
)

// started is a book on an endpoint of its own, closed at the end of the test.
func started(t *testing.T, e *endpoint.Endpoint) *Book {
	t.Helper()
	e.Listen, e.Name = "127.0.0.1:0", "test"
	e.Trusted = func(netip.Addr) bool { return true }
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	b := &Book{Endpoint: e}
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

func udp(addr string) Place {
	return Place{Proxy{Text: "sip:x", host: "x"}, locate.Hop{Transport: "UDP", Addr: netip.MustParseAddrPort(addr)}}
}

// TestKeepAfterStop begins nothing any more, which Close would wait for.
func TestKeepAfterStop(t *testing.T) {
	b := started(t, &endpoint.Endpoint{})
	b.Stop()
	b.Keep([]media.Trunk{{Proxy: "sip:127.0.0.1:9", Register: true, Username: "u"}})
	if len(b.running) != 0 || len(b.Registrations()) != 0 {
		t.Errorf("%d duties are run", len(b.running))
	}
}

// TestProbeAtOnce asks all places of a proxy at the same time, so that those
// that are down hold nobody up.
func TestProbeAtOnce(t *testing.T) {
	const places = 8
	met := make(chan struct{}, places)
	all := make(chan struct{})
	var peers []Place
	for range places {
		e := &endpoint.Endpoint{Options: func() int {
			met <- struct{}{}
			select { // none answers before all are asked
			case <-all:
				return 200
			case <-time.After(probeFor):
				return 500
			}
		}}
		peers = append(peers, udp(started(t, e).Endpoint.Addr().String()))
	}
	b := started(t, &endpoint.Endpoint{})
	well := make(chan bool, 1)
	go func() { well <- b.askAll(t.Context(), peers) }()
	limit := time.After(probeFor / 2)
	for n := range places {
		select {
		case <-met:
		case <-limit:
			t.Fatalf("%d of %d are asked", n, places)
		}
	}
	close(all)
	if !<-well {
		t.Error("they are not well")
	}
}

// TestProbeAnswers takes an answer that is none of being well for what it is.
func TestProbeAnswers(t *testing.T) {
	for status, want := range map[int]health.Verdict{200: health.Up, 404: health.Up, 503: health.Down} {
		peer := started(t, &endpoint.Endpoint{Options: func() int { return status }})
		b := started(t, &endpoint.Endpoint{})
		at := udp(peer.Endpoint.Addr().String())
		for range 2 {
			if well := b.ask(t.Context(), at); well != (want == health.Up) {
				t.Errorf("%d: well %v", status, well)
			}
		}
		if got := b.Health.States(time.Now())[0]; got.Verdict != want || got.Reason == "" && want != health.Up {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

// TestRealm pins a realm once credentials for it were taken, and for as long as
// a trunk names the proxy.
func TestRealm(t *testing.T) {
	b := started(t, &endpoint.Endpoint{})
	p, err := Parse("sip:127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(when, set, realm string, want bool) {
		t.Helper()
		if got := b.Ours(set, p, realm); got != want {
			t.Errorf("%s: %q is ours: %v", when, realm, got)
		}
	}
	ask("at first", "", "evil", true)
	ask("after a challenge that nothing came of", "", "trunk", true)
	ask("set", "trunk", "evil", false)
	b.Pin(p, "trunk")
	ask("pinned", "", "trunk", true)
	ask("pinned", "", "evil", false)
	b.Keep([]media.Trunk{{Proxy: "sip:127.0.0.1:10", Backups: []string{p.Text}}})
	ask("kept", "", "evil", false)
	b.Keep(nil)
	ask("not named any more", "", "evil", true)
	for n := range 2 * maxProxies {
		b.Pin(Proxy{Text: fmt.Sprint(n)}, "x")
	}
	if n := len(b.realms); n != maxProxies {
		t.Errorf("%d are pinned, want %d", n, maxProxies)
	}
}

// TestPrune forgets what no trunk names, unless a call could use it still.
func TestPrune(t *testing.T) {
	b := started(t, &endpoint.Endpoint{})
	now := time.Now()
	for text, l := range map[string]located{
		"kept":  {places: []Place{udp("192.0.2.1:5060")}, at: now.Add(-2 * locateLast)},
		"young": {places: []Place{udp("192.0.2.2:5060")}, at: now},
		"old":   {places: []Place{udp("192.0.2.3:5060")}, at: now.Add(-locateLast)},
	} {
		b.note(Proxy{Text: text}, l)
		b.Health.Answered(l.places[0].Address(), now)
	}
	b.prune(map[string]bool{"kept": true}, now)
	if _, ok := b.located["old"]; ok || len(b.located) != 2 {
		t.Errorf("located: %v", b.located)
	}
	if states := b.Health.States(now); len(states) != 2 || states[1].Address != udp("192.0.2.2:5060").Address() {
		t.Errorf("known: %v", states)
	}
	for n := range 2 * maxProxies {
		b.note(Proxy{Text: fmt.Sprint(n)}, located{at: now.Add(time.Duration(n))})
	}
	if _, ok := b.located[fmt.Sprint(2*maxProxies-1)]; !ok || len(b.located) != maxProxies {
		t.Errorf("%d are located, want %d and the last one", len(b.located), maxProxies)
	}
}

// registrar answers REGISTER with what answer makes of its Expires.
func registrar(t *testing.T, answer func(n int, asked string) (status int, headers []sip.Header)) Proxy {
	t.Helper()
	e := &endpoint.Endpoint{}
	n := 0
	e.Other = func(req *sip.Request, tx sip.ServerTransaction) {
		n++
		status, headers := answer(n, req.GetHeader("Expires").Value())
		e.Respond(tx, req, status, "As Told", headers...)
	}
	p, err := Parse("sip:" + started(t, e).Endpoint.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGranted registers for as long as is granted within reason, and is not
// registered where nothing is.
func TestGranted(t *testing.T) {
	expires := func(v string) []sip.Header { return []sip.Header{sip.NewHeader("Expires", v)} }
	for name, row := range map[string]struct {
		answer func(n int, asked string) (int, []sip.Header)
		want   time.Duration // 0 is an error
	}{
		"what was asked for": {func(int, string) (int, []sip.Header) { return 200, nil }, registerFor},
		"less":               {func(int, string) (int, []sip.Header) { return 200, expires("2") }, 2 * time.Second},
		"more than a day":    {func(int, string) (int, []sip.Header) { return 200, expires("4294967295") }, registerMost},
		"nothing":            {func(int, string) (int, []sip.Header) { return 200, expires("0") }, 0},
		"too brief": {func(n int, asked string) (int, []sip.Header) {
			if n == 1 {
				return 423, []sip.Header{sip.NewHeader("Min-Expires", "7200")}
			}
			return 200, expires(asked)
		}, 2 * time.Hour},
		"wants a century": {func(int, string) (int, []sip.Header) {
			return 423, []sip.Header{sip.NewHeader("Min-Expires", "4294967295")}
		}, 0},
		"wants no more": {func(int, string) (int, []sip.Header) {
			return 423, []sip.Header{sip.NewHeader("Min-Expires", "3600")}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := registrar(t, row.answer)
			b := started(t, &endpoint.Endpoint{})
			r := newRegistration(b, p, duty{proxy: p.Text, register: true, username: "u"})
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			got, err := r.register(ctx, r.asked)
			if got != row.want || (err == nil) != (row.want > 0) || r.known != (row.want > 0) {
				t.Errorf("%v, %v, known %v; want %v", got, err, r.known, row.want)
			}
			if wait := refreshIn(got); err == nil && (wait < time.Second || wait > got) {
				t.Errorf("refreshed in %v", wait)
			}
		})
	}
}

// TestRegisterPins holds a proxy to the realm that its registrar took
// credentials for.
func TestRegisterPins(t *testing.T) {
	challenge := []sip.Header{sip.NewHeader("WWW-Authenticate", `Digest realm="trunk", nonce="n"`)}
	p := registrar(t, func(n int, _ string) (int, []sip.Header) {
		if n == 1 {
			return 401, challenge
		}
		return 200, nil
	})
	b := started(t, &endpoint.Endpoint{})
	b.Pin(p, "evil") // by a phone that had a call taken further
	r := newRegistration(b, p, duty{proxy: p.Text, register: true, username: "u", password: "p"})
	if _, err := r.register(t.Context(), r.asked); err != nil {
		t.Fatal(err)
	}
	if b.Ours("", p, "evil") || !b.Ours("", p, "trunk") {
		t.Errorf("pinned: %v", b.realms)
	}
}
