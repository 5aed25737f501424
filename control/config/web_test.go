package config

import (
	"net/netip"
	"testing"
)

// TestProxies checks that IPv4-mapped IPv6 networks of proxies are treated as IPv4 networks.
func TestProxies(t *testing.T) {
	for v, want := range map[string]netip.Prefix{
		"10.1.2.3":              netip.MustParsePrefix("10.1.2.3/32"),
		"10.1.2.3/8":            netip.MustParsePrefix("10.0.0.0/8"),
		"::ffff:10.1.2.3":       netip.MustParsePrefix("10.1.2.3/32"),
		"::ffff:10.0.0.0/104":   netip.MustParsePrefix("10.0.0.0/8"),
		"::ffff:10.1.2.3/128":   netip.MustParsePrefix("10.1.2.3/32"),
		"2001:db8::1/64":        netip.MustParsePrefix("2001:db8::/64"),
		"::ffff:0.0.0.0/96":     {},
		"::ffff:10.0.0.0/129":   {},
		"10.0.0.0/33":           {},
		"the one in the cellar": {},
	} {
		var c Config
		err := setProxies(&c, v)
		if (err == nil) != want.IsValid() || err == nil && (len(c.Proxies) != 1 || c.Proxies[0] != want) {
			t.Errorf("%s: %v, %v, want %v", v, c.Proxies, err, want)
		}
	}
}
