package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/control/config"
)

// httpServers owns the listeners and the HTTP servers of the API, of the metrics, and of the redirection to HTTPS.
type httpServers struct {
	api, metrics, redirect                         *http.Server // redirect may be nil
	apiListener, metricsListener, redirectListener net.Listener
	tls                                            *tls.Config                     // nil: the API is served over plain HTTP
	certificate                                    atomic.Pointer[tls.Certificate] // the certificate in use
}

// listen opens the listeners. Its errors name the setting.
func (s *httpServers) listen(ctx context.Context, c config.Config) (err error) {
	if err = s.secure(c); err != nil {
		return configError{err}
	}
	var lc net.ListenConfig
	if s.apiListener, err = lc.Listen(ctx, "tcp", c.HTTPAddr); err != nil {
		return fmt.Errorf("PARLEY_HTTP_ADDR: %w", err)
	}
	if s.metricsListener, err = lc.Listen(ctx, "tcp", c.MetricsAddr); err != nil {
		return fmt.Errorf("PARLEY_METRICS_ADDR: %w", err)
	}
	if s.redirect == nil {
		return nil
	}
	if s.redirectListener, err = lc.Listen(ctx, "tcp", c.HTTPTLS.Redirect); err != nil {
		return fmt.Errorf("PARLEY_HTTP_REDIRECT_ADDR: %w", err)
	}
	return nil
}

// secure prepares HTTPS if the settings enable it.
func (s *httpServers) secure(c config.Config) error {
	pair, err := c.HTTPTLS.Load(c.PublicURL)
	if err != nil {
		return err
	}
	s.certificate.Store(pair)
	switch {
	case c.HTTPTLS.ACME:
		s.tls = acmeCertificates(c).TLSConfig()
		get := s.tls.GetCertificate
		s.tls.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			fresh, err := get(hello)
			if err == nil && !slices.Contains(hello.SupportedProtos, acme.ALPNProto) { // otherwise this is a challenge of the CA
				s.certificate.Store(fresh)
			}
			return fresh, err
		}
	case pair != nil:
		s.tls = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil }}
	default:
		return nil
	}
	s.tls.MinVersion = tls.VersionTLS12
	if c.HTTPTLS.Redirect != "" {
		s.redirect = &http.Server{
			Handler: redirectTo(c.PublicURL), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10,
		}
	}
	return nil
}

// acmeCertificates returns a client of the ACME CA (RFC 8555). It proves control of the host by TLS-ALPN (RFC 8737), so
// the CA must reach PARLEY_HTTP_ADDR on port 443 of the host. Certificates are kept in the data directory.
func acmeCertificates(c config.Config) *autocert.Manager {
	m := &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(c.DataDir, "acme")), Email: c.HTTPTLS.Email,
	}
	if u, err := url.Parse(c.PublicURL); err == nil {
		m.HostPolicy = autocert.HostWhitelist(u.Hostname())
	}
	if c.HTTPTLS.Directory != "" {
		m.Client = &acme.Client{DirectoryURL: c.HTTPTLS.Directory}
	}
	return m
}

// redirectTo redirects reading requests to the https URL. It refuses other requests, because their body and key have
// already been sent in clear text.
func redirectTo(publicURL string) http.Handler {
	base := strings.TrimSuffix(publicURL, "/")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "plain HTTP is not accepted; use "+base, http.StatusForbidden)
			return
		}
		path := r.URL.EscapedPath()
		if !strings.HasPrefix(path, "/") {
			path = "/" // a request such as "GET http:.example.com" has no path
		}
		if r.URL.RawQuery != "" {
			path += "?" + r.URL.RawQuery
		}
		http.Redirect(w, r, base+path, http.StatusPermanentRedirect) //nolint:gosec // the host is that of the setting
	})
}

// strictTransport tells browsers to use only HTTPS for this host (RFC 6797) if the public URL is an https URL.
func strictTransport(publicURL string, next http.Handler) http.Handler {
	if !strings.HasPrefix(publicURL, "https://") {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000") // one year
		next.ServeHTTP(w, r)
	})
}

func (s *httpServers) metricsURL() string {
	return "http://" + s.metricsListener.Addr().String() + "/metrics"
}

// start serves requests until close is called.
func (s *httpServers) start(tasks *sync.WaitGroup) {
	s.api.TLSConfig = s.tls
	tasks.Go(func() { // the errors are ErrServerClosed
		if s.tls != nil {
			_ = s.api.ServeTLS(api.Listen(s.apiListener), "", "")
		} else {
			_ = s.api.Serve(api.Listen(s.apiListener))
		}
	})
	tasks.Go(func() { _ = s.metrics.Serve(s.metricsListener) })
	if s.redirect != nil {
		tasks.Go(func() { _ = s.redirect.Serve(s.redirectListener) })
	}
}

// close waits until running requests have finished or ctx ends, and then closes the servers.
func (s *httpServers) close(ctx context.Context) {
	for _, x := range []*http.Server{s.api, s.metrics, s.redirect} {
		if x != nil && x.Shutdown(ctx) != nil {
			_ = x.Close()
		}
	}
	for _, l := range []net.Listener{s.apiListener, s.metricsListener, s.redirectListener} {
		if l != nil {
			_ = l.Close() // an error means that the server has already closed it
		}
	}
}
