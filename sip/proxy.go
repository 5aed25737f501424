package sip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/guard"
)

// A proxy is where a trunk's requests go.
type proxy struct {
	uri       sip.Uri
	transport string // "UDP", "TCP", or "" where it does not say
}

// parseProxy reads "sip:host:port;transport=udp".
func parseProxy(text string) (proxy, error) {
	if err := guard.Text("proxy", text); err != nil {
		return proxy{}, err
	}
	var p proxy
	if err := sip.ParseUri(text, &p.uri); err != nil {
		return proxy{}, fmt.Errorf("proxy %q: %w", text, err)
	}
	p.uri.Host = strings.Trim(p.uri.Host, "[]")
	switch {
	case p.uri.Scheme != "sip":
		return proxy{}, fmt.Errorf("proxy %q: want the scheme sip", text)
	case p.uri.User != "" || p.uri.Host == "" || len(p.uri.Headers) > 0:
		return proxy{}, fmt.Errorf("proxy %q: want sip:host:port", text)
	case p.uri.Port < 0 || p.uri.Port > 0xffff:
		return proxy{}, fmt.Errorf("proxy %q: port %d", text, p.uri.Port)
	}
	if t, ok := p.uri.UriParams.Get("transport"); ok {
		p.transport = strings.ToUpper(t)
		if p.transport != "UDP" && p.transport != "TCP" {
			return proxy{}, fmt.Errorf("proxy %q: transport is neither udp nor tcp", text)
		}
	}
	return p, nil
}

// resolve finds the address of the proxy (RFC 3263, without NAPTR): as it is
// written, by SRV where the port is not, and by name.
func (p proxy) resolve(ctx context.Context, r *net.Resolver) (netip.AddrPort, error) {
	host, port := p.uri.Host, p.uri.Port
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), uint16(or(port, 5060))), nil //nolint:gosec // checked by parseProxy
	}
	if r == nil {
		r = net.DefaultResolver
	}
	if port == 0 {
		via := strings.ToLower(p.transport)
		if via == "" {
			via = "udp"
		}
		if _, found, err := r.LookupSRV(ctx, "sip", via, host); err == nil && len(found) > 0 {
			host, port = strings.TrimSuffix(found[0].Target, "."), int(found[0].Port)
		}
	}
	ips, err := r.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find proxy: %w", err)
	}
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			return netip.AddrPortFrom(ip, uint16(or(port, 5060))), nil //nolint:gosec // a port
		}
	}
	if len(ips) == 0 {
		return netip.AddrPort{}, errors.New("find proxy: it has no address")
	}
	return netip.AddrPortFrom(ips[0], uint16(or(port, 5060))), nil //nolint:gosec // a port
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
