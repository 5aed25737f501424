package realip

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestHandler(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, c := range []struct {
		name, remote string
		passed       []string
		want         string
	}{
		{"direct", "192.0.2.1:4711", nil, "192.0.2.1:4711"},
		{"direct with a forged header", "192.0.2.1:4711", []string{"198.51.100.7"}, "192.0.2.1:4711"},
		{"behind a proxy", "10.0.0.1:4711", []string{"192.0.2.1"}, "192.0.2.1:0"},
		{"behind a proxy with a forged entry", "10.0.0.1:4711", []string{"198.51.100.7, 192.0.2.1"}, "192.0.2.1:0"},
		{"behind two proxies", "10.0.0.1:4711", []string{"198.51.100.7, 192.0.2.1 ,10.0.0.2"}, "192.0.2.1:0"},
		{"several headers", "10.0.0.1:4711", []string{"198.51.100.7", "192.0.2.1", "10.0.0.2"}, "192.0.2.1:0"},
		{"only proxies", "10.0.0.1:4711", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3:0"},
		{"a proxy without the header", "10.0.0.1:4711", nil, "10.0.0.1:4711"},
		{"not an address", "10.0.0.1:4711", []string{"192.0.2.1, unknown"}, "10.0.0.1:4711"},
		{"not an address behind a proxy", "10.0.0.1:4711", []string{"192.0.2.1, unknown, 10.0.0.2"}, "10.0.0.2:0"},
		{"with a port", "10.0.0.1:4711", []string{"192.0.2.1:99"}, "192.0.2.1:0"},
		{"by IPv6", "[::1]:4711", []string{"[2001:db8::1]:99"}, "[2001:db8::1]:0"},
		{"by IPv6 without a port", "[::1]:4711", []string{"2001:db8::1"}, "[2001:db8::1]:0"},
		{"IPv4 within IPv6", "[::ffff:10.0.0.1]:4711", []string{"::ffff:192.0.2.1"}, "192.0.2.1:0"},
		{"no remote address", "@", []string{"192.0.2.1"}, "@"},
	} {
		var got string
		h := Handler(trusted, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.remote, c.passed
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != c.want || r.RemoteAddr != c.remote {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNetwork(t *testing.T) {
	for a, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := Network(netip.MustParseAddr(a)); got.String() != want {
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
	if got := Network(netip.Addr{}); got.IsValid() {
		t.Errorf("no address: %s", got)
	}
}

// FuzzOrigin checks that the result is a valid address or none.
func FuzzOrigin(f *testing.F) {
	f.Add("10.0.0.1:4711", "198.51.100.7, 192.0.2.1 ,10.0.0.2")
	f.Add("[::1]:1", "fe80::1%eth0,[2001:db8::1]:99,,unknown")
	f.Fuzz(func(t *testing.T, remote, passed string) {
		from, ok := origin([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, remote, []string{passed})
		if _, err := netip.ParseAddrPort(from); ok != (err == nil) {
			t.Errorf("%q, %q: %q %v", remote, passed, from, ok)
		}
	})
}
