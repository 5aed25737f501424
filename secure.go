package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/stirshaken"
)

// signer loads the STIR key and certificate. It returns nil if the settings name none. attest returns the attestation
// level of a caller number. Errors name the wrong setting.
func signer(s config.Stir, attest func(from string) string, now time.Time) (*stirshaken.Signer, error) {
	switch {
	case s == config.Stir{}:
		return nil, nil
	case s.Key == "" || s.Cert == "" || s.X5U == "":
		return nil, errors.New("PARLEY_STIR_KEY, PARLEY_STIR_CERT and PARLEY_STIR_X5U: one is missing; accepted: all of them, or none")
	}
	if err := stirshaken.CheckURL(s.X5U); err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_X5U: %w; accepted: an https URL", err)
	}
	key, _, err := stirshaken.Load(s.Key, s.Cert, now)
	if err != nil {
		return nil, fmt.Errorf("PARLEY_STIR_KEY, PARLEY_STIR_CERT: %w; accepted: a P-256 key and its certificate, in PEM", err)
	}
	level := func(from string) stirshaken.Level { return stirshaken.Level(attest(from)) }
	return &stirshaken.Signer{Key: key, X5U: s.X5U, Attest: level}, nil
}

// certificateExpiry returns when the certificates in use expire, by use.
func (srv *server) certificateExpiry() map[string]time.Time {
	all := map[string]time.Time{}
	for use, pair := range map[string]*tls.Certificate{"http": srv.http.certificate.Load(), "sip": srv.sipKeys.certificate.Load()} {
		if pair != nil && pair.Leaf != nil {
			all[use] = pair.Leaf.NotAfter
		}
	}
	return all
}

func secure(s config.TLSFiles) (endpoint.TLS, error) {
	pair, roots, err := s.Load()
	return endpoint.TLS{Listen: s.Addr, Certificate: pair, Roots: roots}, err
}
