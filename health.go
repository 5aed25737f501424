package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// healthCmd is the health check of a container.
type healthCmd struct {
	Ready bool `help:"Also fail while the server takes no new calls, for example because it drains."`
}

// Run asks the server at PARLEY_HTTP_ADDR on this machine. It returns an error if the server is not healthy.
func (h healthCmd) Run(e *env) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	path := "/healthz"
	if h.Ready {
		path = "/readyz"
	}
	var host string
	if u, err := url.Parse(c.PublicURL); err == nil {
		host = u.Hostname() // for which the server has a certificate
	}
	return checkHealth(e, c.HTTPTLS.Scheme()+"://"+localAddr(c.HTTPAddr)+path, host)
}

// localAddr replaces an address that stands for all of this machine by the loopback address.
func localAddr(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return addr
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// checkHealth requests a URL of this machine. It names host in TLS.
func checkHealth(ctx context.Context, url, host string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// An expired certificate does not make the server unhealthy, and the request holds no secret.
	secure := &tls.Config{ServerName: host, InsecureSkipVerify: true} //nolint:gosec // see above
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: secure}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
}
