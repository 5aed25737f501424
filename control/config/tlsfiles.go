package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Load reads the PEM files. Both results are nil if no file is named. An error names the invalid setting.
func (s TLSFiles) Load() (pair *tls.Certificate, roots *x509.CertPool, err error) {
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return nil, nil, errors.New("PARLEY_SIP_TLS_CERT and PARLEY_SIP_TLS_KEY: one is missing; accepted: both, or neither")
	case s.Addr != "" && s.Cert == "":
		return nil, nil, errors.New(
			"PARLEY_SIP_TLS_ADDR needs PARLEY_SIP_TLS_CERT; accepted: host:port, and a certificate",
		)
	}
	if s.Cert != "" {
		read, fault := tls.LoadX509KeyPair(s.Cert, s.Key)
		if fault != nil {
			return nil, nil, fmt.Errorf("PARLEY_SIP_TLS_CERT: %w; accepted: a PEM file of a certificate, with its key in PARLEY_SIP_TLS_KEY", fault)
		}
		pair = &read
	}
	if s.CA == "" {
		return pair, nil, nil
	}
	text, err := os.ReadFile(s.CA)
	if err == nil {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s holds no certificate", s.CA)
		}
	}
	if err != nil {
		return pair, nil, fmt.Errorf("PARLEY_SIP_TLS_CA: %w; accepted: a PEM file of certificates", err)
	}
	return pair, roots, nil
}
