package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

type fakeDNS struct {
	naptr map[string][]NAPTR
	srv   map[string][]*net.SRV
	ips   map[string][]string
	errs  map[string]error // errors of SRV lookups by name
}

var errNotFound = &net.DNSError{Err: "no such host", IsNotFound: true}

func (z fakeDNS) NAPTR(_ context.Context, name string) ([]NAPTR, error) { return z.naptr[name], nil }

func (z fakeDNS) SRV(_ context.Context, name string) ([]*net.SRV, error) {
	if err := z.errs[name]; err != nil {
		return z.srv[name], err
	}
	if len(z.srv[name]) == 0 {
		return nil, errNotFound
	}
	return z.srv[name], nil
}

func (z fakeDNS) Addrs(_ context.Context, host string) (ips []netip.Addr, err error) {
	for _, ip := range z.ips[host] {
		ips = append(ips, netip.MustParseAddr(ip))
	}
	if ips == nil {
		return nil, errNotFound
	}
	return ips, nil
}

func TestFind(t *testing.T) {
	z := fakeDNS{
		naptr: map[string][]NAPTR{
			"full.example": {
				{20, 10, "s", "SIP+D2U", "", "_sip._udp.full.example"},
				{10, 20, "s", "SIP+D2T", "", "_sip._tcp.full.example"},
				{10, 10, "S", "sips+d2t", "", "_sips._tcp.full.example"},
				{5, 10, "u", "E2U+sip", "!^.*$!sip:x@y!", ""},
			},
			"dead.example": {{10, 10, "s", "SIP+D2U", "", "_sip._udp.dead.example"}},
		},
		srv: map[string][]*net.SRV{
			"_sip._udp.full.example":  {{Target: "a.example.", Port: 5062, Priority: 1}},
			"_sip._tcp.full.example":  {{Target: "a.example.", Port: 5063, Priority: 1}},
			"_sips._tcp.full.example": {{Target: "b.example.", Port: 5064, Priority: 2}, {Target: "a.example.", Port: 5065, Priority: 1}},
			"_sip._udp.srv.example":   {{Target: "two.example.", Port: 6000, Priority: 1}, {Target: "gone.example.", Port: 1, Priority: 0}},
			"_sip._udp.dead.example":  {{Target: ".", Port: 0}},
		},
		ips: map[string][]string{
			"a.example": {"192.0.2.1"}, "b.example": {"192.0.2.2"}, "two.example": {"2001:db8::1", "192.0.2.3"},
			"plain.example": {"192.0.2.4"}, "dead.example": {"192.0.2.5"},
		},
	}
	for _, row := range []struct {
		proxy  Proxy
		prefer string
		want   string
	}{
		{Proxy{Host: "192.0.2.9"}, "", "UDP 192.0.2.9:5060"},
		{Proxy{Host: "192.0.2.9", Transport: "TLS"}, "", "TLS 192.0.2.9:5061"},
		{Proxy{Host: "2001:db8::9", Port: 5070, Transport: "TCP"}, "", "TCP [2001:db8::9]:5070"},
		{Proxy{Host: "::ffff:192.0.2.9"}, "", "UDP 192.0.2.9:5060"},
		{Proxy{Host: "full.example"}, "", "TLS 192.0.2.1:5065, TLS 192.0.2.2:5064, TCP 192.0.2.1:5063, UDP 192.0.2.1:5062"},
		{Proxy{Host: "full.example", Transport: "TCP"}, "", "TCP 192.0.2.1:5063"},
		{Proxy{Host: "srv.example"}, "", "UDP [2001:db8::1]:6000, UDP 192.0.2.3:6000"},
		{Proxy{Host: "srv.example"}, "198.51.100.1", "UDP 192.0.2.3:6000, UDP [2001:db8::1]:6000"},
		{Proxy{Host: "plain.example"}, "", "UDP 192.0.2.4:5060"},
		{Proxy{Host: "plain.example", Transport: "TLS"}, "", "TLS 192.0.2.4:5061"},
		{Proxy{Host: "a.example", Port: 5090}, "", "UDP 192.0.2.1:5090"}, // a proxy with a port has no SRV lookup
	} {
		var prefer netip.Addr
		if row.prefer != "" {
			prefer = netip.MustParseAddr(row.prefer)
		}
		hops, err := Find(t.Context(), z, row.proxy, prefer)
		if err != nil {
			t.Errorf("%+v: %v", row.proxy, err)
		}
		var got []string
		for _, h := range hops {
			got = append(got, h.Transport+" "+h.Addr.String())
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%+v: %s, want %s", row.proxy, strings.Join(got, ", "), row.want)
		}
	}
	for _, p := range []Proxy{{Host: "nowhere.example"}, {Host: "dead.example"}} {
		if hops, err := Find(t.Context(), z, p, netip.Addr{}); err == nil {
			t.Errorf("%+v: %v", p, hops)
		}
	}
}

// TestNoFallback checks that the address of the name is used only if the DNS says that there is no
// SRV record. Otherwise another server may be there.
func TestNoFallback(t *testing.T) {
	const udp, tcp = "_sip._udp.carrier.example", "_sip._tcp.carrier.example"
	failure := &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	ips := map[string][]string{"carrier.example": {"198.51.100.80"}, "sbc.example": {"192.0.2.1"}}
	records := []*net.SRV{{Target: "sbc.example.", Port: 5080}}
	for name, row := range map[string]struct {
		z    fakeDNS
		want string // empty means that an error is expected
	}{
		"no record":               {fakeDNS{}, "UDP 198.51.100.80:5060"},
		"an empty answer":         {fakeDNS{srv: map[string][]*net.SRV{udp: {}, tcp: {}}}, "UDP 198.51.100.80:5060"},
		"all lookups fail":        {fakeDNS{errs: map[string]error{udp: failure, tcp: failure}}, ""},
		"one lookup fails":        {fakeDNS{errs: map[string]error{tcp: failure}}, ""},
		"one fails, one succeeds": {fakeDNS{errs: map[string]error{tcp: failure}, srv: map[string][]*net.SRV{udp: records}}, "UDP 192.0.2.1:5080"},
		"timed out":               {fakeDNS{errs: map[string]error{udp: &net.DNSError{IsTimeout: true}}}, ""},
		"another kind of error":   {fakeDNS{errs: map[string]error{udp: errors.New("wrapped")}}, ""},
		"service does not exist":  {fakeDNS{srv: map[string][]*net.SRV{udp: {{Target: "."}}}}, ""},
		"target without address":  {fakeDNS{srv: map[string][]*net.SRV{udp: {{Target: "gone.example.", Port: 5080}}}}, ""},
		"records with an error": {
			fakeDNS{errs: map[string]error{udp: &net.DNSError{Err: "invalid names"}}, srv: map[string][]*net.SRV{udp: records}}, "UDP 192.0.2.1:5080",
		},
	} {
		row.z.ips = ips
		hops, err := Find(t.Context(), row.z, Proxy{Host: "carrier.example"}, netip.Addr{})
		got := ""
		for _, h := range hops {
			got += h.Transport + " " + h.Addr.String()
		}
		if got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, row.want)
		}
	}
}

// TestOrderSRV tries every draw: priorities are in order, weights decide how often a
// record is first, and none is lost.
func TestOrderSRV(t *testing.T) {
	records := []*net.SRV{{Target: "late", Priority: 2}, {Target: "heavy", Priority: 1, Weight: 3}, {Target: "light", Priority: 1, Weight: 1}, {Target: "none", Priority: 1}}
	first := map[string]int{}
	for draw := range 5 { // every draw from 0 to the sum of the weights
		got := orderSRV(records, func(n int) int { return min(draw, n-1) })
		if len(got) != 4 || got[3].Target != "late" {
			t.Fatalf("draw %d: %v", draw, got)
		}
		first[got[0].Target]++
	}
	if first["none"] != 1 || first["light"] != 1 || first["heavy"] != 3 {
		t.Errorf("drawn first: %v", first)
	}
}

func serveDNS(t *testing.T, answer func(query dnsmessage.Message, tcp bool) []byte) string {
	t.Helper()
	var lc net.ListenConfig
	udp, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := lc.Listen(t.Context(), "tcp", udp.LocalAddr().String())
	if err != nil {
		t.Skip("no port free for both UDP and TCP") // the port that the kernel chose is taken for TCP
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { _, _ = udp.Close(), tcp.Close(); serving.Wait() })
	reply := func(b []byte, overTCP bool) []byte {
		var m dnsmessage.Message
		if err := m.Unpack(b); err != nil {
			t.Errorf("query: %v", err)
		}
		return answer(m, overTCP)
	}
	serving.Go(func() {
		for b := make([]byte, 1500); ; {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(reply(b[:n], false), from)
		}
	})
	serving.Go(func() {
		c, err := tcp.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		b := make([]byte, 1500)
		n, _ := c.Read(b)
		for n > 2 && n < 2+int(binary.BigEndian.Uint16(b)) {
			more, _ := c.Read(b[n:])
			n += more
		}
		out := reply(b[2:n], true)
		_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	})
	return udp.LocalAddr().String()
}

func raw(order, preference uint16, texts ...string) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, order), preference)
	for _, text := range texts {
		b = append(append(b, byte(len(text))), text...)
	}
	return append(b, 0)
}

func TestDNS(t *testing.T) {
	data := raw(50, 10, "s", "SIP+D2U", "", "_sip", "_udp", "carrier", "example")
	server := serveDNS(t, func(q dnsmessage.Message, tcp bool) []byte {
		q.Response = true
		if q.Questions[0].Type != typeNAPTR || q.Questions[0].Name.String() != "carrier.example." {
			t.Errorf("asked %v", q.Questions)
		}
		if q.Truncated = !tcp; tcp {
			q.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.UnknownResource{Type: typeNAPTR, Data: data},
			}}
		}
		b, err := q.Pack()
		if err != nil {
			t.Error(err)
		}
		return b
	})
	d := &DNS{Server: server}
	got, err := d.NAPTR(t.Context(), "carrier.example")
	want := []NAPTR{{50, 10, "s", "SIP+D2U", "", "_sip._udp.carrier.example"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(raw(50, 10, "s", "SIP+D2U", "", "_sip", "_udp"))
	f.Add([]byte{0, 1, 0, 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := parseNAPTR(b); err == nil && len(n.Replacement) > len(b) {
			t.Fatalf("%q of %d bytes", n.Replacement, len(b))
		}
	})
}
