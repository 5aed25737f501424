package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// timeout is how long an endpoint may take to answer.
const timeout = 15 * time.Second

// inward lists what is not the public Internet beyond what net/netip knows.
var inward = []netip.Prefix{ //nolint:gochecknoglobals // read-only table
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by carriers, RFC 6598
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),        // IPv4-compatible
	netip.MustParsePrefix("64:ff9b::/96"), // NAT64 leads to any IPv4 address
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo and other protocols
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is one of the public Internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range inward {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// CheckURL returns what is wrong with an endpoint's address. Whether its host
// leads outward is checked at each connection, after the name is resolved.
func CheckURL(text string, insecure bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return errors.New("a webhook url is like https://host/path")
	case u.User != nil:
		return errors.New("a webhook url holds no user or password")
	case u.Scheme != "https" && (u.Scheme != "http" || !insecure):
		return errors.New("a webhook url begins with https:// (http needs PARLEY_ALLOW_INSECURE_WEBHOOKS)")
	}
	return nil
}

// errInward is a connection that is refused.
var errInward = errors.New("the address is not public")

// newClient returns a client that connects to public addresses alone, unless
// insecure, follows no redirects and uses no proxy.
func newClient(insecure bool) *http.Client {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if !insecure {
		// Checked here, the address is the one that is connected to: a name
		// cannot resolve to another one in between.
		d.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !Public(ap.Addr()) {
				return fmt.Errorf("%s: %w", address, errInward)
			}
			return nil
		}
	}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: d.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 2, MaxIdleConns: 100, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
