package main

import (
	"errors"
	"fmt"
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

// secure is how SIP is spoken over TLS.
func secure(s config.Secure) (endpoint.Secure, error) {
	pair, roots, err := s.Load()
	return endpoint.Secure{Listen: s.Addr, Certificate: pair, Roots: roots}, err
}
