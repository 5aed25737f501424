package stirshaken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
)

// Load reads a P-256 private key and its certificate, the first in its file, from
// PEM. It returns an error if they do not match or the certificate is not valid
// at now. Errors contain nothing of the key.
func Load(keyFile, certFile string, now time.Time) (*ecdsa.PrivateKey, *x509.Certificate, error) {
	key, err := loadKey(keyFile)
	if err != nil {
		return nil, nil, err
	}
	cert, err := loadCertificate(certFile)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !key.PublicKey.Equal(cert.PublicKey):
		return nil, nil, fmt.Errorf("certificate %s does not match the key %s", certFile, keyFile)
	case now.Before(cert.NotBefore):
		return nil, nil, fmt.Errorf("certificate %s is not valid before %s", certFile, cert.NotBefore.Format(time.RFC3339))
	case now.After(cert.NotAfter):
		return nil, nil, fmt.Errorf("certificate %s is not valid after %s", certFile, cert.NotAfter.Format(time.RFC3339))
	}
	return key, cert, nil
}

func loadKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if key := parseKey(block); key != nil && key.Curve == elliptic.P256() {
			return key, nil
		}
	}
	return nil, fmt.Errorf("key %s: want a P-256 private key in PEM", file)
}

func parseKey(block *pem.Block) *ecdsa.PrivateKey {
	switch block.Type {
	case "EC PRIVATE KEY":
		if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return key
		}
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if key, ok := parsed.(*ecdsa.PrivateKey); ok && err == nil {
			return key
		}
	}
	return nil
}

func loadCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", file, err)
		}
		return cert, nil
	}
	return nil, fmt.Errorf("certificate %s: %w", file, errors.New("want a certificate in PEM"))
}
