// Package resolver locates SIP servers (RFC 3263) by address, SRV, NAPTR or host
// name.
package resolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// maxHops bounds the hops returned for a proxy.
const maxHops = 8

// A Hop is one address of a proxy.
type Hop struct {
	Transport string // "UDP", "TCP" or "TLS"
	Addr      netip.AddrPort
}

// A Proxy is what a trunk's proxy URI says.
type Proxy struct {
	Host      string // name or IP address, without brackets
	Port      uint16 // 0 if the URI has none
	Transport string // "UDP", "TCP", "TLS", or "" if the URI names none
}

// A Resolver looks up DNS records. SRV records are sorted by priority. For a name
// without SRV records, SRV returns no error, or a *net.DNSError with IsNotFound.
// It may return valid records with an error about others.
type Resolver interface {
	NAPTR(ctx context.Context, name string) ([]NAPTR, error)
	SRV(ctx context.Context, name string) ([]*net.SRV, error)
	Addrs(ctx context.Context, host string) ([]netip.Addr, error)
}

// A NAPTR is a record of RFC 3403.
type NAPTR struct {
	Order, Preference   uint16
	Flags, Service      string
	Regexp, Replacement string
}

// ErrNoAddress is returned if the DNS has no address for a proxy.
var ErrNoAddress = errors.New("the proxy has no address")

// Find returns the hops of p in the order to try them: at least one, or an error.
// Within one host name, addresses of the family of prefer come first, if it is
// valid. The address of the name itself is used only if the DNS says that there
// are no SRV records; after a failed lookup it may belong to another server.
func Find(ctx context.Context, r Resolver, p Proxy, prefer netip.Addr) ([]Hop, error) {
	f := finder{r: r, prefer: prefer}
	if ip, err := netip.ParseAddr(p.Host); err == nil {
		t := cmp.Or(p.Transport, "UDP")
		return []Hop{{t, netip.AddrPortFrom(ip.Unmap(), cmp.Or(p.Port, defaultPort(t)))}}, nil
	}
	byName, err := true, error(nil)
	if p.Port == 0 {
		byName, err = f.addServices(ctx, p)
	}
	if byName { // RFC 3263 section 4.2: default port
		t := cmp.Or(p.Transport, "UDP")
		err = errors.Join(err, f.addHost(ctx, t, p.Host, cmp.Or(p.Port, defaultPort(t))))
	}
	switch {
	case len(f.hops) > 0:
		return f.hops[:min(len(f.hops), maxHops)], nil
	case err != nil:
		return nil, fmt.Errorf("find proxy: %w", err)
	default:
		return nil, fmt.Errorf("find proxy: %w", ErrNoAddress)
	}
}

type finder struct {
	r      Resolver
	prefer netip.Addr
	hops   []Hop
}

// A service is an SRV name and its transport.
type service struct{ transport, name string }

// addServices looks up the SRV records that NAPTR records name, or else the default
// ones. none reports that the DNS has none.
func (f *finder) addServices(ctx context.Context, p Proxy) (none bool, err error) {
	var list []service
	if p.Transport == "" {
		records, err := f.r.NAPTR(ctx, p.Host)
		if ctx.Err() != nil {
			return false, fmt.Errorf("NAPTR %s: %w", p.Host, cmp.Or(err, ctx.Err()))
		}
		list = naptrServices(records) // most domains have no NAPTR records, and some servers return errors
	}
	if len(list) == 0 {
		list = defaultServices(p)
	}
	none = true
	var errs []error
	for _, s := range list {
		missing, err := f.addSRV(ctx, s)
		none = none && missing
		errs = append(errs, err)
	}
	return none, errors.Join(errs...)
}

// naptrServices returns the services of NAPTR records in order (RFC 3263 section
// 4.1).
func naptrServices(records []NAPTR) []service {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b NAPTR) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	var list []service
	for _, n := range records {
		if !strings.EqualFold(n.Flags, "s") || n.Regexp != "" || n.Replacement == "" {
			continue
		}
		switch strings.ToUpper(n.Service) {
		case "SIP+D2U":
			list = append(list, service{"UDP", n.Replacement})
		case "SIP+D2T":
			list = append(list, service{"TCP", n.Replacement})
		case "SIPS+D2T":
			list = append(list, service{"TLS", n.Replacement})
		}
	}
	return list
}

// defaultServices returns the services to look up without NAPTR records.
func defaultServices(p Proxy) []service {
	udp, tcp, tls := service{"UDP", "_sip._udp." + p.Host}, service{"TCP", "_sip._tcp." + p.Host}, service{"TLS", "_sips._tcp." + p.Host}
	switch p.Transport {
	case "UDP":
		return []service{udp}
	case "TCP":
		return []service{tcp}
	case "TLS":
		return []service{tls}
	default:
		return []service{udp, tcp}
	}
}

func (f *finder) addSRV(ctx context.Context, s service) (none bool, err error) {
	records, err := f.r.SRV(ctx, s.name)
	if len(records) == 0 {
		if err == nil {
			return true, nil
		}
		missing, ok := errors.AsType[*net.DNSError](err)
		return ok && missing.IsNotFound, fmt.Errorf("SRV %s: %w", s.name, err)
	}
	var errs []error
	if err != nil {
		errs = append(errs, fmt.Errorf("SRV %s: %w", s.name, err))
	}
	for _, rec := range orderSRV(records, rand.IntN) {
		if rec.Target == "." { // the service does not exist (RFC 2782)
			continue
		}
		errs = append(errs, f.addHost(ctx, s.transport, strings.TrimSuffix(rec.Target, "."), rec.Port))
	}
	return false, errors.Join(errs...)
}

// orderSRV sorts records by priority, and those of one priority by weighted
// random choice (RFC 2782). draw returns a number below n.
func orderSRV(records []*net.SRV, draw func(n int) int) []*net.SRV {
	left := slices.Clone(records)
	slices.SortStableFunc(left, func(a, b *net.SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Weight, b.Weight))
	})
	sorted := make([]*net.SRV, 0, len(left))
	for len(left) > 0 {
		same, sum := 0, 0
		for same < len(left) && left[same].Priority == left[0].Priority {
			sum += int(left[same].Weight)
			same++
		}
		pick, at := draw(sum+1), 0
		for pick -= int(left[at].Weight); pick > 0 && at < same-1; pick -= int(left[at].Weight) {
			at++
		}
		sorted = append(sorted, left[at])
		left = slices.Delete(left, at, at+1)
	}
	return sorted
}

func (f *finder) addHost(ctx context.Context, transport, host string, p uint16) error {
	ips, err := f.r.Addrs(ctx, host)
	if err != nil {
		return fmt.Errorf("address of %s: %w", host, err)
	}
	ips = slices.Clone(ips)
	slices.SortStableFunc(ips, func(a, b netip.Addr) int { return cmp.Compare(f.rank(a), f.rank(b)) })
	for _, ip := range ips {
		f.hops = append(f.hops, Hop{transport, netip.AddrPortFrom(ip.Unmap(), p)})
	}
	return nil
}

func (f *finder) rank(ip netip.Addr) int {
	if f.prefer.IsValid() && ip.Unmap().Is4() != f.prefer.Unmap().Is4() {
		return 1
	}
	return 0
}

func defaultPort(transport string) uint16 {
	if transport == "TLS" {
		return 5061
	}
	return 5060
}
