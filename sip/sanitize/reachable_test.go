package sanitize

import (
	"net/netip"
	"testing"
)

func TestReachable(t *testing.T) {
	for _, row := range []struct {
		to, trunk string
		want      bool
	}{
		{"198.51.100.9", "203.0.113.7", true},
		{"10.0.0.9", "203.0.113.7", true}, // a gateway behind the trunk
		{"127.0.0.1", "203.0.113.7", false},
		{"127.8.0.1", "203.0.113.7", false},
		{"::1", "203.0.113.7", false},
		{"::ffff:127.0.0.1", "203.0.113.7", false},
		{"127.0.0.1", "127.0.0.9", true},
		{"::1", "127.0.0.1", true},
		{"169.254.169.254", "203.0.113.7", false},
		{"169.254.169.254", "169.254.3.4", false},
		{"169.254.169.254", "169.254.169.254", true},
		{"169.254.3.5", "169.254.3.4", true},
		{"169.254.3.5", "203.0.113.7", false},
		{"fe80::1%eth0", "2001:db8::1", false},
		{"fd00:ec2::254", "2001:db8::1", false},
		{"100.100.100.200", "100.100.100.7", false},
		{"0.0.0.0", "127.0.0.1", false},
		{"::", "::1", false},
		{"224.0.0.1", "203.0.113.7", false},
	} {
		if got := Reachable(netip.MustParseAddr(row.to), netip.MustParseAddr(row.trunk)); got != row.want {
			t.Errorf("from %s to %s: %t", row.trunk, row.to, got)
		}
	}
	if Reachable(netip.Addr{}, netip.MustParseAddr("127.0.0.1")) {
		t.Error("no address is reachable")
	}
}
