package egress

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, in := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255",
		"192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1",
		"64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1",
	} {
		if Public(netip.MustParseAddr(in)) {
			t.Errorf("%s is let out", in)
		}
	}
	for _, out := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450::1"} {
		if !Public(netip.MustParseAddr(out)) {
			t.Errorf("%s is refused", out)
		}
	}
}

func TestOwn(t *testing.T) {
	if !own(netip.MustParseAddr("127.0.0.1")) || own(netip.MustParseAddr("8.8.8.8")) {
		t.Error("this machine has 127.0.0.1 and not 8.8.8.8")
	}
}

// TestClient asks a server of this machine, which only a rule lets through; by a
// name that resolves to it too; and is sent on by it, which nothing follows.
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
		case !tt.let && !errors.Is(err, ErrInward):
			t.Errorf("%s: %v, want it refused", name, err)
		}
		c.CloseIdleConnections()
	}
}
