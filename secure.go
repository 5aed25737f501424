package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/sip"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/shaken"
)

// signer reads the files that calls are signed with; it is nil where nothing is set. attest is how sure we
// are of a caller number. Its errors name the setting that is wrong.
func signer(s config.Stir, attest func(from string) string, now time.Time) (sip.Signer, error) {
	switch {
	case s == config.Stir{}:
		return nil, nil
	case s.Key == "" || s.Cert == "" || s.X5U == "":
		return nil, errors.New("PARLEY_STIR_KEY, PARLEY_STIR_CERT and PARLEY_STIR_X5U: one is missing; accepted: all of them, or none")
	}
	if err := shaken.CheckURL(s.X5U); err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_X5U: %w; accepted: an https URL", err)
	}
	key, _, err := shaken.Load(s.Key, s.Cert, now)
	if err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_KEY, PARLEY_STIR_CERT: %w; accepted: a P-256 key and its certificate, in PEM", err)
	}
	level := func(from string) shaken.Level { return shaken.Level(attest(from)) }
	return &shaken.Signer{Key: key, X5U: s.X5U, Attest: level}, nil
}

// secure reads the files of SIP over TLS. Its errors name the setting that is wrong.
func secure(s config.Secure) (endpoint.Secure, error) {
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
