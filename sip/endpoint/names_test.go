package endpoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
)

// certificate is one for names, and the roots to check it by.
func certificate(t *testing.T, names ...string) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, DNSNames: names,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// started is an endpoint that is closed at the end of the test.
func started(t *testing.T, s Secure) *Endpoint {
	t.Helper()
	e := &Endpoint{Listen: "127.0.0.1:0", Secure: s, Name: "test", Trusted: func(netip.Addr) bool { return true }}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

// options asks at addr how host is, within a dialog where tag is set.
func options(t *testing.T, e *Endpoint, addr, host, tag string) error {
	t.Helper()
	uri := sip.Uri{Scheme: "sip", Host: host}
	req := sip.NewRequest(sip.OPTIONS, uri)
	from, to := sip.FromHeader{Address: uri}, sip.ToHeader{Address: uri}
	from.Params.Add("tag", sip.GenerateTagN(16))
	if tag != "" {
		to.Params.Add("tag", tag)
	}
	req.AppendHeader(&from)
	req.AppendHeader(&to)
	id := sip.CallIDHeader(sip.GenerateTagN(24))
	req.AppendHeader(&id)
	req.AppendHeader(&sip.CSeqHeader{SeqNo: 1, MethodName: sip.OPTIONS})
	hops := sip.MaxForwardsHeader(70)
	req.AppendHeader(&hops)
	req.SetTransport("TLS")
	req.SetDestination(addr)
	e.Sign(req)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err := e.Ask(ctx, req)
	return err
}

// TestNames sends a request over a connection that proves its name only,
// whichever name was expected last.
func TestNames(t *testing.T) {
	cert, roots := certificate(t, "a.example", "*.carrier.example")
	addr := started(t, Secure{Listen: "127.0.0.1:0", Certificate: cert}).SecureAddr().String()
	e := started(t, Secure{Roots: roots})
	if err := options(t, e, addr, "a.example", ""); err == nil {
		t.Error("a name was proven that nobody expects")
	}
	for i, row := range []struct {
		expect, host, tag string
		ok, other         bool // other is a connection that proves another name
	}{
		{"evil.example", "evil.example", "", false, false}, // opens none
		{"a.example", "a.example", "", true, false},
		{"a.example", "a.example", "", true, false},
		{"one.carrier.example", "one.carrier.example", "", true, false}, // the same certificate
		{"evil.example", "evil.example", "", false, true},
		{"evil.example", "a.example", "", true, false}, // not held up by the other
		{"a.example", "evil.example", "", false, true},
		{"a.example", "192.0.2.1", "x", true, false}, // within a dialog
	} {
		e.Expect(addr, row.expect)
		err := options(t, e, addr, row.host, row.tag)
		if (err == nil) != row.ok || errors.Is(err, errUnproven) != row.other {
			t.Errorf("%d: %+v: %v", i, row, err)
		}
	}
}

// TestUnexpect forgets names that nobody asked for lately, and bounds them.
func TestUnexpect(t *testing.T) {
	e := started(t, Secure{})
	e.Expect("192.0.2.1:5061", "a")
	e.Expect("192.0.2.2:5061", "b")
	e.Unexpect(nil, time.Now().Add(-time.Hour))
	if len(e.names) != 2 {
		t.Errorf("%v: one expected lately is gone", e.names)
	}
	e.Unexpect(map[string]bool{"192.0.2.2:5061": true}, time.Now().Add(time.Hour))
	if _, ok := e.names["192.0.2.2:5061"]; !ok || len(e.names) != 1 {
		t.Errorf("%v, want the one of 192.0.2.2", e.names)
	}
	for n := range 2 * maxNames {
		e.Expect(fmt.Sprint(n), "c")
	}
	if _, ok := e.names[fmt.Sprint(2*maxNames-1)]; !ok || len(e.names) != maxNames {
		t.Errorf("%d names, want %d and the last one", len(e.names), maxNames)
	}
}
