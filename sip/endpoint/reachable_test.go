package endpoint

import (
	"net/netip"
	"testing"
)

func TestCheckReachable(t *testing.T) {
	for _, row := range []struct {
		listen, public, to string
		want               bool
	}{
		{"127.0.0.1", "", "127.0.0.2", true},
		{"127.0.0.1", "", "::1", false},
		{"::1", "", "::1", true},
		{"::1", "", "127.0.0.1", false},
		{"0.0.0.0", "203.0.113.7", "198.51.100.9", true},
		{"0.0.0.0", "203.0.113.7", "::ffff:198.51.100.9", true},
		{"0.0.0.0", "203.0.113.7", "2001:db8::9", false},
		{"0.0.0.0", "2001:db8::7", "2001:db8::9", false},
		{"::", "203.0.113.7", "198.51.100.9", true},
		{"::", "203.0.113.7", "2001:db8::9", false},
		{"::", "2001:db8::7", "2001:db8::9", true},
		{"::", "2001:db8::7", "198.51.100.9", false},
	} {
		public, _ := netip.ParseAddr(row.public)
		if err := CheckReachable(netip.MustParseAddr(row.listen), public, netip.MustParseAddr(row.to)); (err == nil) != row.want {
			t.Errorf("%+v: %v", row, err)
		}
	}
}
