package safedial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestPublic(t *testing.T) {
	for _, in := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255",
		"168.63.129.16", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1",
		"64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1",
	} {
		if Public(netip.MustParseAddr(in)) {
			t.Errorf("got %s public, want not public", in)
		}
	}
	for _, out := range []string{"1.1.1.1", "8.8.8.8", "168.63.129.17", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450::1"} {
		if !Public(netip.MustParseAddr(out)) {
			t.Errorf("got %s not public, want public", out)
		}
	}
}

func TestMayReach(t *testing.T) {
	r := Rules{Hosts: []string{"crm.internal:8443", "10.0.0.5"}}
	for host, want := range map[string]bool{
		"crm.example.com:443": true, "8.8.8.8:443": true, "crm.internal:8443": true, "CRM.internal:8443": true, "10.0.0.5:443": true,
		"[2606:4700:4700::1111]:443": true, "internal.example.com:443": true,
		"crm.internal:443": false, "10.0.0.6:443": false, "[::1]:443": false, "localhost:443": false, "a.localhost.:443": false, "printer.local:443": false,
		"crm:443": false, "nas.home.arpa:443": false, "169.254.169.254:80": false,
	} {
		name, port, err := net.SplitHostPort(host)
		if got := r.MayReach(name, port); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", host, got, err, want)
		}
	}
	if !(Rules{Anywhere: true}).MayReach("localhost", "80") {
		t.Error("a rule allows everything, and localhost is not reached")
	}
}

func TestOwn(t *testing.T) {
	if !isLocal(netip.MustParseAddr("127.0.0.1")) || isLocal(netip.MustParseAddr("8.8.8.8")) {
		t.Error("this machine has 127.0.0.1 and not 8.8.8.8")
	}
}

// TestClient checks that a client reaches a server on this machine only if a rule allows it, and that the client does
// not follow the server's redirect.
func TestClient(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
	}))
	defer srv.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	byName := "http://localhost:" + port
	for name, tt := range map[string]struct {
		rules Rules
		url   string
		let   bool
	}{
		"nothing is allowed":      {Rules{}, srv.URL, false},
		"a name that leads here":  {Rules{}, byName, false},
		"everything is allowed":   {Rules{Anywhere: true}, srv.URL, true},
		"the host is allowed":     {Rules{Hosts: []string{"127.0.0.1"}}, srv.URL, true},
		"its port is allowed":     {Rules{Hosts: []string{"LOCALHOST:" + port}}, byName, true},
		"another port is allowed": {Rules{Hosts: []string{"127.0.0.1:1"}}, srv.URL, false},
		"another host is allowed": {Rules{Hosts: []string{"example.com"}}, srv.URL, false},
	} {
		c := tt.rules.Client()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tt.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		switch {
		case tt.let && (err != nil || resp.StatusCode != http.StatusFound):
			t.Errorf("%s: %v", name, err)
		case !tt.let && !errors.Is(err, ErrNotPublic):
			t.Errorf("%s: %v, want it refused", name, err)
		}
		c.CloseIdleConnections()
	}
}

// TestRebinding checks that name servers that alternate between public and local
// addresses, or return both, do not lead to this machine.
func TestRebinding(t *testing.T) {
	canary, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var touched atomic.Int64
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, closed := canary.Accept()
			if closed != nil {
				return
			}
			touched.Add(1)
			_ = c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(canary.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	home, outside := [4]byte{127, 0, 0, 1}, [4]byte{192, 0, 2, 1}
	for name, answers := range map[string][][][4]byte{
		"here": {{home}}, "in turn": {{outside}, {home}}, "both": {{outside, home}, {home, outside}},
	} {
		client := Rules{Resolver: nameServer(t, answers)}.Client()
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rebind.example:"+port+"/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			if !errors.Is(err, ErrNotPublic) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
	}
	_ = canary.Close()
	<-accepted
	if n := touched.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// nameServer starts a DNS server and returns its resolver. It answers each query with the next list of answers, with
// a TTL of 0.
func nameServer(t *testing.T, answers [][][4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-over })
	go func() {
		defer close(over)
		buf := make([]byte, 512)
		for n := 0; ; {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:size]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if m.Questions[0].Type == dnsmessage.TypeA {
				for _, a := range answers[n%len(answers)] {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
						Body:   &dnsmessage.AResource{A: a},
					})
				}
				n++
			}
			if text, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(text, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}
