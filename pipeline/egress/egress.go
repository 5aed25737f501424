// Package egress keeps requests that others choose the address of from reaching
// what is not public: this machine, its networks, and the metadata of a cloud.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrInward is the error of a connection that is refused.
var ErrInward = errors.New("the address is not public")

// inward lists what is not the public Internet beyond what net/netip knows.
var inward = []netip.Prefix{ //nolint:gochecknoglobals // read-only table
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // shared by carriers, RFC 6598
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's, on each of its machines
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

// Rules are what a client may reach.
type Rules struct {
	// Anywhere lets it reach everything.
	Anywhere bool
	// Hosts may be reached wherever they are: names or addresses, with a port
	// ("crm.internal:8080") for that port alone.
	Hosts []string
	// Timeout bounds a request, its answer included; 0 leaves that to its context.
	Timeout time.Duration
	// Resolver looks names up; nil is the machine's.
	Resolver *net.Resolver
}

// Allows tells whether a host is one of Hosts.
func (r Rules) Allows(host, port string) bool {
	return slices.ContainsFunc(r.Hosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.EqualFold(h, net.JoinHostPort(host, port))
	})
}

// Client returns a client that connects to public addresses alone, and not to
// those of this machine, where the rules do not say otherwise. It follows no
// redirects and uses no proxy.
func (r Rules) Client() *http.Client {
	open := &net.Dialer{Timeout: 10 * time.Second, Resolver: r.Resolver}
	// Checked here, the address is the one that is connected to: a name cannot
	// resolve to another one in between.
	guarded := &net.Dialer{Timeout: 10 * time.Second, Resolver: r.Resolver, Control: check}
	return &http.Client{
		Timeout: r.Timeout,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				host, port, err := net.SplitHostPort(address)
				if err == nil && (r.Anywhere || r.Allows(host, port)) {
					return open.DialContext(ctx, network, address)
				}
				return guarded.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second}, // else a dead connection takes all requests
			MaxIdleConnsPerHost: 8, MaxIdleConns: 100, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// check refuses a connection that leads inward.
func check(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !Public(ap.Addr()) || own(ap.Addr()) {
		return fmt.Errorf("%s: %w", address, ErrInward)
	}
	return nil
}

// own tells whether an address is this machine's. Where that cannot be known,
// it may be.
func own(a netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addrs, func(x net.Addr) bool {
		p, err := netip.ParsePrefix(x.String())
		return err == nil && p.Addr().Unmap() == a.Unmap().WithZone("")
	})
}
