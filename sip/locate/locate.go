// Package locate finds where the requests for a proxy go (RFC 3263): by its
// address, by SRV, by NAPTR, and by name. Its order is that in which a request
// is tried.
package locate

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

// maxHops bounds how many places of one proxy are tried.
const maxHops = 8

// A Hop is one place that takes requests for a proxy.
type Hop struct {
	Transport string // "UDP", "TCP" or "TLS"
	Addr      netip.AddrPort
}

// A Proxy is what a trunk says of its carrier.
type Proxy struct {
	Host      string // a name or an IP address, without brackets
	Port      uint16 // 0 where it does not say
	Transport string // "UDP", "TCP", "TLS", or "" where it does not say
}

// A Resolver asks the DNS. SRV records come sorted by priority. Where there are
// none of a name, SRV returns none and no error, or a *net.DNSError that says so
// by IsNotFound. It may return records together with an error, which is then
// about others.
type Resolver interface {
	NAPTR(ctx context.Context, name string) ([]NAPTR, error)
	SRV(ctx context.Context, name string) ([]*net.SRV, error)
	Addrs(ctx context.Context, host string) ([]netip.Addr, error)
}

// A NAPTR is one record of RFC 3403.
type NAPTR struct {
	Order, Preference   uint16
	Flags, Service      string
	Regexp, Replacement string
}

// ErrNowhere is returned where the DNS knows no place for a proxy.
var ErrNowhere = errors.New("the proxy has no address")

// Find returns the places of p, in the order in which to try them: at least
// one, or an error. Those of the family of prefer, where it is valid, come
// first among the addresses of one name. The address of the name itself counts
// only where the DNS says that there are no SRV records: where it does not say,
// another host may stand there than the one that takes calls.
func Find(ctx context.Context, r Resolver, p Proxy, prefer netip.Addr) ([]Hop, error) {
	f := finder{r: r, prefer: prefer}
	if ip, err := netip.ParseAddr(p.Host); err == nil {
		t := cmp.Or(p.Transport, "UDP")
		return []Hop{{t, netip.AddrPortFrom(ip.Unmap(), cmp.Or(p.Port, port(t)))}}, nil
	}
	byName, err := true, error(nil)
	if p.Port == 0 {
		byName, err = f.services(ctx, p)
	}
	if byName { // RFC 3263 section 4.2: with the default port
		t := cmp.Or(p.Transport, "UDP")
		err = errors.Join(err, f.host(ctx, t, p.Host, cmp.Or(p.Port, port(t))))
	}
	switch {
	case len(f.hops) > 0:
		return f.hops[:min(len(f.hops), maxHops)], nil
	case err != nil:
		return nil, fmt.Errorf("find proxy: %w", err)
	default:
		return nil, fmt.Errorf("find proxy: %w", ErrNowhere)
	}
}

type finder struct {
	r      Resolver
	prefer netip.Addr
	hops   []Hop
}

// A service is an SRV name and the transport that it stands for.
type service struct{ transport, name string }

// services looks for the proxy's SRV records: those that its NAPTR records
// name, or else the usual ones. none says that the DNS knows of none.
func (f *finder) services(ctx context.Context, p Proxy) (none bool, err error) {
	var list []service
	if p.Transport == "" {
		records, err := f.r.NAPTR(ctx, p.Host)
		if ctx.Err() != nil {
			return false, fmt.Errorf("NAPTR %s: %w", p.Host, cmp.Or(err, ctx.Err()))
		}
		list = offered(records) // most domains have none, and some servers refuse to say
	}
	if len(list) == 0 {
		list = usual(p)
	}
	none = true
	var errs []error
	for _, s := range list {
		missing, err := f.srv(ctx, s)
		none = none && missing
		errs = append(errs, err)
	}
	return none, errors.Join(errs...)
}

// offered reads the services that NAPTR records lead to, the wanted first (RFC
// 3263 section 4.1).
func offered(records []NAPTR) []service {
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

// usual are the services asked for where no NAPTR record says otherwise.
func usual(p Proxy) []service {
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

// srv adds the places of one service. none says that the DNS knows of no record.
func (f *finder) srv(ctx context.Context, s service) (none bool, err error) {
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
	for _, rec := range order(records, rand.IntN) {
		if rec.Target == "." { // the service is decidedly not there (RFC 2782)
			continue
		}
		errs = append(errs, f.host(ctx, s.transport, strings.TrimSuffix(rec.Target, "."), rec.Port))
	}
	return false, errors.Join(errs...)
}

// order sorts records by priority, and those of one priority by lots weighed
// (RFC 2782). draw returns a number below n.
func order(records []*net.SRV, draw func(n int) int) []*net.SRV {
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

// host adds the addresses of a name.
func (f *finder) host(ctx context.Context, transport, host string, p uint16) error {
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

func port(transport string) uint16 {
	if transport == "TLS" {
		return 5061
	}
	return 5060
}
