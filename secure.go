package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/parley-voice/parley/sip/endpoint"
)

// A SecureConfig is how SIP is spoken over TLS: where it is listened for, and
// files in PEM.
type SecureConfig struct {
	Addr, Cert, Key, CA string
}

// load reads the files. Its errors name the setting that is wrong.
func (s SecureConfig) load() (endpoint.Secure, error) {
	out := endpoint.Secure{Listen: s.Addr}
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return out, errors.New("PARLEY_SIP_TLS_CERT and PARLEY_SIP_TLS_KEY: one is missing; accepted: both, or neither")
	case s.Addr != "" && s.Cert == "":
		return out, errors.New("PARLEY_SIP_TLS_ADDR: nobody is listened for without PARLEY_SIP_TLS_CERT; accepted: host:port, and a certificate")
	}
	if s.Cert != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return out, fmt.Errorf("PARLEY_SIP_TLS_CERT: %w; accepted: a PEM file of a certificate, with its key in PARLEY_SIP_TLS_KEY", err)
		}
		out.Certificate = &pair
	}
	if s.CA == "" {
		return out, nil
	}
	text, err := os.ReadFile(s.CA)
	if err == nil {
		out.Roots = x509.NewCertPool()
		if !out.Roots.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s holds no certificate", s.CA)
		}
	}
	if err != nil {
		return out, fmt.Errorf("PARLEY_SIP_TLS_CA: %w; accepted: a PEM file of certificates", err)
	}
	return out, nil
}
