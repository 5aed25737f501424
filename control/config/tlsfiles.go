package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"os"
	"strings"
)

// withHTTPS adds the settings of HTTPS.
func withHTTPS(all map[string]Setting) map[string]Setting {
	text := func(at func(*HTTPTLS) *string) func(*Config, string) error {
		return func(c *Config, v string) error { *at(&c.HTTPTLS) = v; return nil }
	}
	all["PARLEY_HTTP_TLS_CERT"] = Setting{"a PEM file", text(func(h *HTTPTLS) *string { return &h.Cert })}
	all["PARLEY_HTTP_TLS_KEY"] = Setting{"a PEM file", text(func(h *HTTPTLS) *string { return &h.Key })}
	all["PARLEY_HTTP_ACME"] = Setting{"on or off", setSwitch(func(c *Config) *bool { return &c.HTTPTLS.ACME })}
	all["PARLEY_HTTP_ACME_EMAIL"] = Setting{"an email address", setEmail}
	all["PARLEY_HTTP_ACME_URL"] = Setting{"an https URL", setURL(func(c *Config) *string { return &c.HTTPTLS.Directory })}
	all["PARLEY_HTTP_REDIRECT_ADDR"] = Setting{"host:port", addr(func(c *Config) *string { return &c.HTTPTLS.Redirect })}
	return all
}

func setEmail(c *Config, v string) error {
	parsed, err := mail.ParseAddress(v)
	if err != nil || parsed.Address != v {
		return fmt.Errorf("%q", v)
	}
	c.HTTPTLS.Email = v
	return nil
}

// Enabled reports whether the API is served over HTTPS.
func (h HTTPTLS) Enabled() bool { return h.ACME || h.Cert != "" }

// Scheme returns the scheme of the API's URLs.
func (h HTTPTLS) Scheme() string {
	if h.Enabled() {
		return "https"
	}
	return "http"
}

// Load reads the certificate. The result is nil for plain HTTP and for ACME. An error names the invalid setting.
// publicURL is the setting PARLEY_PUBLIC_URL.
func (h HTTPTLS) Load(publicURL string) (*tls.Certificate, error) {
	u, err := url.Parse(publicURL)
	https := err == nil && u.Scheme == "https"
	switch {
	case h.ACME && (h.Cert != "" || h.Key != ""):
		return nil, errors.New("PARLEY_HTTP_ACME and PARLEY_HTTP_TLS_CERT are both set; accepted: only one of them")
	case h.ACME && (!https || net.ParseIP(u.Hostname()) != nil || !strings.Contains(u.Hostname(), ".")):
		return nil, fmt.Errorf("PARLEY_HTTP_ACME needs a public host name in PARLEY_PUBLIC_URL, which is %q; accepted: https://HOST", publicURL)
	case !h.ACME && (h.Email != "" || h.Directory != ""):
		return nil, errors.New("PARLEY_HTTP_ACME_EMAIL and PARLEY_HTTP_ACME_URL need PARLEY_HTTP_ACME=on")
	case h.Redirect != "" && (!h.Enabled() || !https):
		return nil, errors.New("PARLEY_HTTP_REDIRECT_ADDR needs PARLEY_HTTP_TLS_CERT or PARLEY_HTTP_ACME, and an https URL in PARLEY_PUBLIC_URL")
	}
	return loadPair("PARLEY_HTTP_TLS", h.Cert, h.Key)
}

// loadPair reads a certificate and its key. The result is nil if neither file is named. Errors name the settings, which
// start with prefix.
func loadPair(prefix, cert, key string) (*tls.Certificate, error) {
	switch {
	case (cert == "") != (key == ""):
		return nil, fmt.Errorf("%[1]s_CERT and %[1]s_KEY: one is missing; accepted: both, or neither", prefix)
	case cert == "":
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%[1]s_CERT: %[2]w; accepted: a PEM file of a certificate, with its key in %[1]s_KEY", prefix, err)
	}
	return &pair, nil
}

// Load reads the PEM files. Both results are nil if no file is named. An error names the invalid setting.
func (s TLSFiles) Load() (pair *tls.Certificate, roots *x509.CertPool, err error) {
	if pair, err = loadPair("PARLEY_SIP_TLS", s.Cert, s.Key); err != nil {
		return nil, nil, err
	}
	if s.Addr != "" && pair == nil {
		return nil, nil, errors.New("PARLEY_SIP_TLS_ADDR needs PARLEY_SIP_TLS_CERT; accepted: host:port, and a certificate")
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
