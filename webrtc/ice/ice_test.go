package ice

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

var here = netip.MustParseAddrPort("127.0.0.1:0")

// TestCertificateIsRenewed: a process that is up for longer than a certificate is
// good takes calls still, and has one certificate for many of them.
func TestCertificateIsRenewed(t *testing.T) {
	e, err := Open(t.Context(), Config{UDP: here})
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
			t.Errorf("%v before its end, another certificate: %v", ends.Sub(c.at), fresh)
		}
		e.how.Certificates = first.Certificates
	}
	if pc, err := e.Connect(); err != nil {
		t.Error(err)
	} else {
		_ = pc.Close()
	}
}

// TestTCPIsBounded: one address does not take the TCP port from all others, and
// what it let go of is there for it again.
func TestTCPIsBounded(t *testing.T) {
	e, err := Open(t.Context(), Config{UDP: here, TCP: here})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // after those that are open
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
	for range mostTCPEach {
		open = append(open, dial())
	}
	if _, err := dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("one too many: %v", err)
	}
	_ = open[0].Close()
	for began := time.Now(); ; {
		c := dial()
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			return // it is served
		}
		if time.Since(began) > 5*time.Second {
			t.Fatal("another one is not let in")
		}
	}
}
