package ice

import (
	"net/netip"
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
