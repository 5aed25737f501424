package ice

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func TestCertificateIsRenewed(t *testing.T) {
	e, err := Open(t.Context(), Config{UDP: loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	now := time.Now()
	first, err := e.configuration(now)
	if err != nil {
		t.Fatal(err)
	}
	ends := first.Certificates[0].Expires()
	for _, c := range []struct {
		at    time.Time
		fresh bool
	}{{now.Add(time.Hour), false}, {ends.Add(-renewBefore), false}, {ends.Add(-renewBefore + time.Second), true}, {ends.Add(time.Hour), true}} {
		got, err := e.configuration(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if fresh := !got.Certificates[0].Equals(first.Certificates[0]); fresh != c.fresh {
			t.Errorf("%v before expiry: got a new certificate: %v", ends.Sub(c.at), fresh)
		}
		e.config.Certificates = first.Certificates
	}
	if pc, err := e.Connect(); err != nil {
		t.Error(err)
	} else {
		_ = pc.Close()
	}
}

// TestTCPLimit checks the limit of TCP connections per address, and that closed connections no longer count.
func TestTCPLimit(t *testing.T) {
	e, err := Open(t.Context(), Config{UDP: loopback, TCP: loopback})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // after the open connections
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", e.TCP().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		return c
	}
	var open []net.Conn
	for range maxTCPPerNetwork {
		open = append(open, dial())
	}
	if _, err := dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("beyond the limit: got %v, want EOF", err)
	}
	_ = open[0].Close()
	for began := time.Now(); ; {
		c := dial()
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			return // the connection was accepted
		}
		if time.Since(began) > 5*time.Second {
			t.Fatal("a connection after release was not accepted")
		}
	}
}

func TestCanReach(t *testing.T) {
	const loopback, link, private, public = "127.0.0.1", "169.254.169.254", "10.1.2.3", "198.51.100.7"
	for _, c := range []struct {
		bind, public string
		reached      string
	}{
		{"0.0.0.0", "203.0.113.7", public},
		{"203.0.113.7", "203.0.113.7", public},
		{"0.0.0.0", "192.168.1.5", private + " " + public},
		{"192.168.1.5", "203.0.113.7", private + " " + public},
		{"127.0.0.1", "127.0.0.1", loopback + " " + private + " " + public},
		{"0.0.0.0", "127.0.0.1", loopback + " " + private + " " + public},
		{"127.0.0.1", "203.0.113.7", loopback + " " + private + " " + public},
		{"169.254.1.1", "169.254.1.1", link + " " + public},
		{"0.0.0.0", "0.0.0.0", private + " " + public},
		{"::", "2001:db8::7", public},
	} {
		e := &Endpoint{bind: netip.MustParseAddr(c.bind), public: netip.MustParseAddr(c.public)}
		for _, a := range []string{loopback, link, private, public, "0.0.0.0", "224.0.0.251", "255.255.255.255", "::", "ff02::1"} {
			want := slices.Contains(strings.Fields(c.reached), a)
			if got := e.CanReach(netip.MustParseAddr(a)); got != want {
				t.Errorf("bound to %s and public %s: CanReach(%s) = %v", c.bind, c.public, a, got)
			}
			if at := netip.MustParseAddr(a); at.Is4() && e.CanReach(netip.AddrFrom16(at.As16())) != want {
				t.Errorf("%s mapped to IPv6 differs", a)
			}
		}
		for a, like := range map[string]string{"::1": loopback, "fe80::1": link, "fd00:ec2::254": private, "2001:db8:9::1": public} {
			if got, want := e.CanReach(netip.MustParseAddr(a)), e.CanReach(netip.MustParseAddr(like)); got != want {
				t.Errorf("bound to %s and public %s: CanReach(%s) = %v", c.bind, c.public, a, got)
			}
		}
	}
	if (&Endpoint{}).CanReach(netip.Addr{}) {
		t.Error("CanReach: got true for an invalid address")
	}
}
