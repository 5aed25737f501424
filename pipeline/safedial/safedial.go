// Package safedial opens connections to URLs that customers choose. It blocks non-public addresses: this machine, its
// networks, and cloud metadata services.
package safedial

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

// ConnectTimeout is the maximum time to open a connection, and that of its TLS handshake.
const ConnectTimeout = 10 * time.Second

// ErrNotPublic is the error of a blocked connection.
var ErrNotPublic = errors.New("the address is not public")

// reserved lists non-public prefixes that net/netip does not classify.
var reserved = []netip.Prefix{ //nolint:gochecknoglobals // read-only table
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // addresses shared by carriers, RFC 6598
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's metadata address
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),        // IPv4-compatible addresses
	netip.MustParsePrefix("64:ff9b::/96"), // NAT64, which reaches any IPv4 address
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo and other protocols
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4 addresses
	netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is on the public Internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Rules define the addresses that a client may reach.
type Rules struct {
	// Anywhere allows every address.
	Anywhere bool
	// Hosts are names or addresses that are always allowed. With a port ("crm.internal:8080") only that port is
	// allowed.
	Hosts []string
	// Timeout bounds a request with its response; 0 means no limit besides the context.
	Timeout time.Duration
	// Resolver looks up names; nil means the system resolver.
	Resolver *net.Resolver
}

// Allows reports whether a host is one of Hosts.
func (r Rules) Allows(host, port string) bool {
	return slices.ContainsFunc(r.Hosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.EqualFold(h, net.JoinHostPort(host, port))
	})
}

// MayReach reports whether Dial may reach a host. It looks up no names. Of names it knows those of private networks: names
// without a dot, and those of RFC 6761, RFC 6762, RFC 8375 and the domain internal.
func (r Rules) MayReach(host, port string) bool {
	if r.Anywhere || r.Allows(host, port) {
		return true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return Public(a) && !isLocal(a)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.Contains(name, ".") && !slices.ContainsFunc([]string{".localhost", ".local", ".home.arpa", ".internal"},
		func(domain string) bool { return strings.HasSuffix(name, domain) })
}

// Client returns a client that connects only to public addresses of other machines, and to addresses that the rules
// allow. It follows no redirects and uses no proxy.
func (r Rules) Client() *http.Client {
	return &http.Client{
		Timeout: r.Timeout,
		Transport: &http.Transport{
			DialContext: r.Dial, TLSHandshakeTimeout: ConnectTimeout, ForceAttemptHTTP2: true,
			HTTP2: &http.HTTP2Config{
				SendPingTimeout: 2 * time.Second,
				PingTimeout:     time.Second,
			}, // pings detect a dead connection, which requests would otherwise continue to use
			MaxIdleConnsPerHost: 8, MaxIdleConns: 100, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Dial opens a connection to a public address, or to another address that the rules allow.
func (r Rules) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: ConnectTimeout, KeepAlive: 15 * time.Second, Resolver: r.Resolver}
	host, port, err := net.SplitHostPort(address)
	if err != nil || !r.Anywhere && !r.Allows(host, port) {
		d.Control = check // receives the resolved address, so DNS rebinding cannot bypass the check
	}
	return d.DialContext(ctx, network, address)
}

// check rejects connections to non-public addresses.
func check(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !Public(ap.Addr()) || isLocal(ap.Addr()) {
		return fmt.Errorf("%s: %w", address, ErrNotPublic)
	}
	return nil
}

// isLocal reports whether an address belongs to this machine. If the interfaces cannot be
// listed, it returns true.
func isLocal(a netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addrs, func(x net.Addr) bool {
		p, err := netip.ParsePrefix(x.String())
		return err == nil && p.Addr().Unmap() == a.Unmap().WithZone("")
	})
}
