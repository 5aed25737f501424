package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/resolver"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Proxy{
		"sip:192.0.2.1":                        {host: "192.0.2.1"},
		"sip:carrier.example:5070":             {host: "carrier.example", Port: 5070},
		"sip:carrier.example;transport=TcP":    {host: "carrier.example", Transport: "TCP"},
		"sips:carrier.example":                 {host: "carrier.example", Transport: "TLS"},
		"sips:carrier.example;transport=tcp":   {host: "carrier.example", Transport: "TLS"},
		"sip:[2001:db8::1]:5061;transport=tls": {host: "2001:db8::1", Port: 5061, Transport: "TLS"},
	} {
		want.Text = text
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "tel:+12025550100", "sip:a@carrier.example", "sip:carrier.example?x=y", "sip:carrier.example;transport=sctp",
		"sips:carrier.example;transport=udp", "sip:carrier.example:99999", "sip:a\r\nb",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func mustParse(t *testing.T, text string) Proxy {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A flakyResolver fails while it is down.
type flakyResolver struct {
	down    bool
	lookups int
}

var errNoServer = errors.New("no name server answers")

func (f *flakyResolver) NAPTR(context.Context, string) ([]resolver.NAPTR, error) { return nil, nil }

func (f *flakyResolver) SRV(context.Context, string) ([]*net.SRV, error) { return nil, errNoServer }

func (f *flakyResolver) Addrs(context.Context, string) ([]netip.Addr, error) {
	f.lookups++
	if f.down {
		return nil, errNoServer
	}
	return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}, nil
}

func newRegistry(r resolver.Resolver) *Registry {
	return &Registry{Endpoint: &endpoint.Endpoint{}, Resolver: r}
}

// TestDNSFailure checks that an old answer is used for an hour while lookups fail.
func TestDNSFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &flakyResolver{}
		b := newRegistry(r)
		p := mustParse(t, "sip:carrier.example:5060;transport=udp")
		for range 3 {
			if at, err := b.locate(t.Context(), p); err != nil || len(at) != 2 {
				t.Fatalf("%v, %v", at, err)
			}
		}
		if r.lookups != 1 {
			t.Errorf("%d lookups within 30 s", r.lookups)
		}
		r.down = true
		<-time.After(59 * time.Minute)
		if at, err := b.locate(t.Context(), p); err != nil || len(at) != 2 || r.lookups != 2 {
			t.Errorf("while the DNS fails: %v, %v, %d lookups", at, err, r.lookups)
		}
		<-time.After(2 * time.Minute)
		if at, err := b.locate(t.Context(), p); !errors.Is(err, errNoServer) {
			t.Errorf("after an hour: %v, %v", at, err)
		}
	})
}

// A srvResolver has an SRV record, and another server at the name itself.
type srvResolver struct{ down bool }

func (n *srvResolver) NAPTR(context.Context, string) ([]resolver.NAPTR, error) { return nil, nil }

func (n *srvResolver) SRV(_ context.Context, name string) ([]*net.SRV, error) {
	switch {
	case n.down:
		return nil, &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
	case name == "_sip._udp.carrier.example":
		return []*net.SRV{{Target: "sbc.carrier.example.", Port: 5080}}, nil
	default:
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
}

func (n *srvResolver) Addrs(_ context.Context, host string) ([]netip.Addr, error) {
	if host == "sbc.carrier.example" {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("198.51.100.80")}, nil
}

// TestSRVFailure checks that the old target is kept while the SRV lookup fails.
func TestSRVFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &srvResolver{}
		b := newRegistry(r)
		p := mustParse(t, "sip:carrier.example")
		for _, down := range []bool{false, true, true} {
			r.down = down
			at, err := b.locate(t.Context(), p)
			if err != nil || len(at) != 1 || at[0].Hop.Addr != netip.MustParseAddrPort("192.0.2.1:5080") {
				t.Fatalf("down %v: %v, %v", down, at, err)
			}
			<-time.After(locationFresh + time.Second)
		}
	})
}

// TestTargets checks that targets that are up come first, then those that are down, and none that
// is paused.
func TestTargets(t *testing.T) {
	all, err := ParseAll(media.Trunk{Proxy: "sip:192.0.2.1", Backups: []string{"sip:192.0.2.2", "sip:192.0.2.3", "sip:192.0.2.4;transport=tcp"}})
	if err != nil {
		t.Fatal(err)
	}
	b := newRegistry(&flakyResolver{})
	at := func(n byte) health.Address {
		return health.Address{Transport: "UDP", At: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 5060)}
	}
	b.Health.RecordNoAnswer(at(1), "x", time.Now())
	b.Health.RecordRetryAfter(at(2), time.Minute, time.Now(), time.Now())
	var got []string
	for p, err := range b.Targets(t.Context(), all) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Hop.Transport+" "+p.Hop.Addr.String())
	}
	want := []string{"UDP 192.0.2.3:5060", "TCP 192.0.2.4:5060", "UDP 192.0.2.1:5060"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%q, want %q", got, want)
	}
	for _, err := range b.Targets(t.Context(), all[1:2]) {
		if !errors.Is(err, media.ErrPaused) {
			t.Error(err)
		}
	}
	// During a pause a target that is down gets no call; otherwise it does.
	for _, err := range b.Targets(t.Context(), all[:2]) {
		if !errors.Is(err, media.ErrPaused) {
			t.Errorf("one is down, one asked for a pause: %v", err)
		}
	}
	for _, row := range []struct {
		name  string
		trunk media.Trunk
		want  bool
	}{
		{"down and paused", media.Trunk{Proxy: all[0].Text, Backups: []string{all[1].Text}}, true},
		{"paused", media.Trunk{Proxy: all[1].Text}, true},
		{"down", media.Trunk{Proxy: all[0].Text}, false},
		{"paused and up", media.Trunk{Proxy: all[1].Text, Backups: []string{all[2].Text}}, false},
		{"paused and not located yet", media.Trunk{Proxy: all[1].Text, Backups: []string{"sip:192.0.2.77"}}, false},
	} {
		if until, paused := b.Paused(row.trunk); paused != row.want || paused && time.Until(until) > 31*time.Second {
			t.Errorf("%s: paused %v until %v", row.name, paused, until)
		}
	}
}
