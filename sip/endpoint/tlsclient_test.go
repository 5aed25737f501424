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

func startEndpoint(t *testing.T, s TLS) *Endpoint {
	t.Helper()
	return start(t, &Endpoint{TLS: s, Name: "test", IsTrusted: func(netip.Addr) bool { return true }})
}

// sendOptions sends an OPTIONS for host to addr, within a dialog if tag is set.
func sendOptions(t *testing.T, e *Endpoint, addr, host, tag string) error {
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
	e.Finalize(req)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err := e.Do(ctx, req)
	return err
}

// TestExpectName checks that a request uses only a connection that proves the request's name,
// whichever name was expected last.
func TestExpectName(t *testing.T) {
	cert, roots := certificate(t, "a.example", "*.carrier.example")
	addr := startEndpoint(t, TLS{Listen: "127.0.0.1:0", Certificate: cert}).TLSAddr().String()
	e := startEndpoint(t, TLS{Roots: roots})
	if err := sendOptions(t, e, addr, "a.example", ""); err == nil {
		t.Error("connected without an expected name")
	}
	for i, row := range []struct {
		expect, host, tag string
		ok, other         bool // the peer's connection proves another name
	}{
		{"evil.example", "evil.example", "", false, false}, // this request opens no connection
		{"a.example", "a.example", "", true, false},
		{"a.example", "a.example", "", true, false},
		{"one.carrier.example", "one.carrier.example", "", true, false}, // another connection with the same certificate
		{"evil.example", "evil.example", "", false, true},
		{"evil.example", "a.example", "", true, false}, // the other request does not block it
		{"a.example", "evil.example", "", false, true},
		{"a.example", "192.0.2.1", "x", true, false}, // a request within a dialog
	} {
		e.ExpectName(addr, row.expect)
		err := sendOptions(t, e, addr, row.host, row.tag)
		if (err == nil) != row.ok || errors.Is(err, errUnproven) != row.other {
			t.Errorf("%d: %+v: %v", i, row, err)
		}
	}
}

// TestForgetNames checks that old names are removed, and that the number of names is bounded.
func TestForgetNames(t *testing.T) {
	e := startEndpoint(t, TLS{})
	e.ExpectName("192.0.2.1:5061", "a")
	e.ExpectName("192.0.2.2:5061", "b")
	e.ForgetNames(nil, time.Now().Add(-time.Hour))
	if len(e.tls.names) != 2 {
		t.Errorf("%v: a recent name was removed", e.tls.names)
	}
	e.ForgetNames(map[string]bool{"192.0.2.2:5061": true}, time.Now().Add(time.Hour))
	if _, ok := e.tls.names["192.0.2.2:5061"]; !ok || len(e.tls.names) != 1 {
		t.Errorf("got %v, want only 192.0.2.2", e.tls.names)
	}
	for n := range 2 * maxNames {
		e.ExpectName(fmt.Sprint(n), "c")
	}
	if _, ok := e.tls.names[fmt.Sprint(2*maxNames-1)]; !ok || len(e.tls.names) != maxNames {
		t.Errorf("%d names, want %d and the last one", len(e.tls.names), maxNames)
	}
}
