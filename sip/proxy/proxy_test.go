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
	"github.com/parley-voice/parley/sip/locate"
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

// A flaky resolver answers while it is up.
type flaky struct {
	down  bool
	asked int
}

var errAway = errors.New("no name server answers")

func (f *flaky) NAPTR(context.Context, string) ([]locate.NAPTR, error) { return nil, nil }

func (f *flaky) SRV(context.Context, string) ([]*net.SRV, error) { return nil, errAway }

func (f *flaky) Addrs(context.Context, string) ([]netip.Addr, error) {
	f.asked++
	if f.down {
		return nil, errAway
	}
	return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}, nil
}

func book(r locate.Resolver) *Book { return &Book{Endpoint: &endpoint.Endpoint{}, Resolver: r} }

// TestDNSIsAway goes on with what was known for an hour.
func TestDNSIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &flaky{}
		b := book(r)
		p, err := Parse("sip:carrier.example:5060;transport=udp")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if at, err := b.find(t.Context(), p); err != nil || len(at) != 2 {
				t.Fatalf("%v, %v", at, err)
			}
		}
		if r.asked != 1 {
			t.Errorf("asked %d times within 30 s", r.asked)
		}
		r.down = true
		<-time.After(59 * time.Minute)
		if at, err := b.find(t.Context(), p); err != nil || len(at) != 2 || r.asked != 2 {
			t.Errorf("while the DNS is away: %v, %v, asked %d times", at, err, r.asked)
		}
		<-time.After(2 * time.Minute)
		if at, err := b.find(t.Context(), p); !errors.Is(err, errAway) {
			t.Errorf("after an hour: %v, %v", at, err)
		}
	})
}

// A named resolver has an SRV record, and a web site at the name itself.
type named struct{ down bool }

func (n *named) NAPTR(context.Context, string) ([]locate.NAPTR, error) { return nil, nil }

func (n *named) SRV(_ context.Context, name string) ([]*net.SRV, error) {
	switch {
	case n.down:
		return nil, &net.DNSError{Err: "server misbehaving", Name: name, IsTemporary: true}
	case name == "_sip._udp.carrier.example":
		return []*net.SRV{{Target: "sbc.carrier.example.", Port: 5080}}, nil
	default:
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
}

func (n *named) Addrs(_ context.Context, host string) ([]netip.Addr, error) {
	if host == "sbc.carrier.example" {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("198.51.100.80")}, nil
}

// TestServiceIsAway keeps to the place found where the DNS fails to say where
// the service is.
func TestServiceIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &named{}
		b := book(r)
		p, err := Parse("sip:carrier.example")
		if err != nil {
			t.Fatal(err)
		}
		for _, down := range []bool{false, true, true} {
			r.down = down
			at, err := b.find(t.Context(), p)
			if err != nil || len(at) != 1 || at[0].Hop.Addr != netip.MustParseAddrPort("192.0.2.1:5080") {
				t.Fatalf("down %v: %v, %v", down, at, err)
			}
			<-time.After(locateEvery + time.Second)
		}
	})
}

// TestPlaces offers what is up first, what is down last, and never what asked
// to be left alone.
func TestPlaces(t *testing.T) {
	all, err := All(media.Trunk{Proxy: "sip:192.0.2.1", Backups: []string{"sip:192.0.2.2", "sip:192.0.2.3", "sip:192.0.2.4;transport=tcp"}})
	if err != nil {
		t.Fatal(err)
	}
	b := book(&flaky{})
	at := func(n byte) health.Address {
		return health.Address{Transport: "UDP", At: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 5060)}
	}
	b.Health.Silent(at(1), "x", time.Now())
	b.Health.Bar(at(2), time.Minute, time.Now())
	var got []string
	for p, err := range b.Places(t.Context(), all) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Hop.Transport+" "+p.Hop.Addr.String())
	}
	want := []string{"UDP 192.0.2.3:5060", "TCP 192.0.2.4:5060", "UDP 192.0.2.1:5060"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%q, want %q", got, want)
	}
	for _, err := range b.Places(t.Context(), all[1:2]) {
		if !errors.Is(err, ErrBarred) {
			t.Error(err)
		}
	}
}
