package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
)

// newCertificate returns a self-signed certificate for 127.0.0.1 and its key, in PEM.
func newCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	return newCertificateUntil(t, time.Now().Add(time.Hour))
}

func newCertificateUntil(t *testing.T, until time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// TestStirConfig signs a call, and checks that errors name the invalid setting.
func TestStirConfig(t *testing.T) {
	certPEM, keyPEM := newCertificate(t)
	_, otherPEM := newCertificate(t)
	other := writeFile(t, "other", string(otherPEM))
	good := config.Stir{Key: writeFile(t, "key", string(keyPEM)), Cert: writeFile(t, "cert", string(certPEM)), X5U: "https://cert.example/a.pem"}
	attest := func(from string) string { return map[string]string{"+12025550100": "A"}[from] }
	for name, row := range map[string]struct {
		s    config.Stir
		now  time.Time
		want string
	}{
		"no URL":                 {config.Stir{Key: good.Key, Cert: good.Cert}, time.Now(), "PARLEY_STIR_X5U"},
		"a URL alone":            {config.Stir{X5U: good.X5U}, time.Now(), "PARLEY_STIR_KEY"},
		"an http URL":            {config.Stir{Key: good.Key, Cert: good.Cert, X5U: "http://cert.example/a.pem"}, time.Now(), "PARLEY_STIR_X5U"},
		"the wrong key":          {config.Stir{Key: other, Cert: good.Cert, X5U: good.X5U}, time.Now(), "PARLEY_STIR_KEY"},
		"no such key":            {config.Stir{Key: other + "/none", Cert: good.Cert, X5U: good.X5U}, time.Now(), "PARLEY_STIR_KEY"},
		"an expired certificate": {good, time.Now().Add(2 * time.Hour), "not valid after"},
	} {
		if s, err := signer(row.s, attest, row.now); s != nil || err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "accepted: ") {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if s, err := signer(config.Stir{}, attest, time.Now()); s != nil || err != nil {
		t.Errorf("no settings: %v, %v", s, err)
	}
	s, err := signer(good, attest, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.Sign("+12025550100", "12025550123", time.Now()); err != nil || !strings.Contains(id, "info=<https://cert.example/a.pem>") {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := s.Sign("+12025550199", "12025550123", time.Now()); err != nil || id != "" {
		t.Errorf("a number without attestation: %q, %v", id, err)
	}
}

// TestSecureConfig checks that errors about invalid files name the setting.
func TestSecureConfig(t *testing.T) {
	certPEM, keyPEM := newCertificate(t)
	cert, key, junk := writeFile(t, "cert.pem", string(certPEM)), writeFile(t, "key.pem", string(keyPEM)), writeFile(t, "junk.pem", "junk")
	none := filepath.Join(t.TempDir(), "none")
	for name, row := range map[string]struct {
		s    config.TLSFiles
		want string
	}{
		"nothing":                    {config.TLSFiles{}, ""},
		"roots alone":                {config.TLSFiles{CA: cert}, ""},
		"all":                        {config.TLSFiles{Addr: "127.0.0.1:0", Cert: cert, Key: key, CA: cert}, ""},
		"a certificate, no key":      {config.TLSFiles{Cert: cert}, "PARLEY_SIP_TLS_KEY"},
		"a key, no certificate":      {config.TLSFiles{Key: key}, "PARLEY_SIP_TLS_CERT"},
		"an address, no certificate": {config.TLSFiles{Addr: "127.0.0.1:0"}, "PARLEY_SIP_TLS_ADDR"},
		"an invalid certificate":     {config.TLSFiles{Cert: junk, Key: key}, "PARLEY_SIP_TLS_CERT"},
		"no such file":               {config.TLSFiles{Cert: cert, Key: none}, "none"},
		"invalid roots":              {config.TLSFiles{CA: junk}, "PARLEY_SIP_TLS_CA"},
		"missing roots":              {config.TLSFiles{CA: none}, "PARLEY_SIP_TLS_CA"},
	} {
		got, err := secure(row.s)
		if (err != nil) != (row.want != "") || err != nil && (!strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "accepted: ")) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
		if err == nil && ((got.Certificate != nil) != (row.s.Cert != "") || (got.Roots != nil) != (row.s.CA != "") || got.Listen != row.s.Addr) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
