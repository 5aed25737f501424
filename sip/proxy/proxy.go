// Package proxy tracks the proxies of trunks: their addresses, health,
// authentication realms and registrations.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/resolver"
	"github.com/parley-voice/parley/sip/sanitize"
)

// maxTargets bounds the targets that one call is offered to.
const maxTargets = 4

// A Proxy is a proxy URI of a trunk.
type Proxy struct {
	Text      string // as the trunk sets it
	Port      int    // 0 if the URI has none
	Transport string // "UDP", "TCP", "TLS", or "" if the URI names none
	host      string
}

// Parse reads "sip:host:port;transport=udp". The scheme sips means TLS.
func Parse(text string) (Proxy, error) {
	if err := sanitize.CheckText("proxy", text); err != nil {
		return Proxy{}, err
	}
	var uri sip.Uri
	if err := sip.ParseUri(text, &uri); err != nil {
		return Proxy{}, fmt.Errorf("proxy %q: %w", text, err)
	}
	p := Proxy{Text: text, host: strings.Trim(uri.Host, "[]"), Port: uri.Port}
	switch {
	case uri.Scheme != "sip" && uri.Scheme != "sips":
		return Proxy{}, fmt.Errorf("proxy %q: the scheme must be sip or sips", text)
	case uri.User != "" || p.host == "" || len(uri.Headers) > 0:
		return Proxy{}, fmt.Errorf("proxy %q: want sip:host:port", text)
	case uri.Port < 0 || uri.Port > 0xffff:
		return Proxy{}, fmt.Errorf("proxy %q: port %d is above 65535", text, uri.Port)
	}
	t, _ := uri.UriParams.Get("transport")
	var ok bool
	if p.Transport, ok = transportOf(uri.Scheme, strings.ToUpper(t)); !ok {
		return Proxy{}, fmt.Errorf("proxy %q: the transport must be udp, tcp or tls; with sips, tcp or tls", text)
	}
	return p, nil
}

func transportOf(scheme, param string) (t string, ok bool) {
	switch {
	case scheme == "sips" && param != "UDP":
		return "TLS", param == "" || param == "TCP" || param == "TLS"
	case scheme == "sips":
		return "", false
	default:
		return param, param == "" || param == "UDP" || param == "TCP" || param == "TLS"
	}
}

// Host returns the host as in a URI.
func (p Proxy) Host() string {
	if strings.Contains(p.host, ":") {
		return "[" + p.host + "]"
	}
	return p.host
}

// URI returns the proxy's URI without a user.
func (p Proxy) URI() sip.Uri { return sip.Uri{Scheme: "sip", Host: p.Host(), Port: p.Port} }

// A Target is one address of a proxy.
type Target struct {
	Proxy Proxy
	Hop   resolver.Hop
}

// Address returns the address under which the target's health is tracked.
func (p Target) Address() health.Address {
	return health.Address{Transport: p.Hop.Transport, At: p.Hop.Addr}
}

// ParseAll reads all proxies of a trunk, the preferred first.
func ParseAll(t media.Trunk) ([]Proxy, error) {
	all := make([]Proxy, 0, 1+len(t.Backups))
	for _, text := range append([]string{t.Proxy}, t.Backups...) {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// A Registry holds the state of all proxies. Its exported fields must not change
// after the first use.
type Registry struct {
	Endpoint *endpoint.Endpoint
	// Resolver finds proxies by name; nil uses the system's.
	Resolver resolver.Resolver
	// OnRegistered receives the result and duration of each registration; nil is
	// skipped.
	OnRegistered func(ok bool, took time.Duration)
	// OnPinned is called when Realms has a new realm; nil is skipped. It must not
	// block.
	OnPinned func()
	// Log receives warnings; nil drops them.
	Log *slog.Logger
	// Health holds the status of each address.
	Health health.Tracker

	mu            sync.Mutex
	located       map[string]location // locations by proxy
	realms        map[string]pin      // pinned realms by proxy
	registrations map[task]*registration
	running       map[task]func() // functions that stop a task and wait for it
	stopped       bool            // set by Stop
}

const (
	dnsTimeout = 5 * time.Second
	// locationFresh is how long a DNS answer is used without another lookup, and
	// locationValid is how long it is used while lookups fail.
	locationFresh = 30 * time.Second
	locationValid = time.Hour
	// dnsRetry is the time between failed lookups while an old answer is valid.
	dnsRetry = 5 * time.Second
)

// A location is the result of a DNS lookup.
type location struct {
	targets  []Target
	foundAt  time.Time
	failedAt time.Time // last failed lookup since the location was found
}

// locate returns the targets of a proxy, from an earlier lookup if that is fresh,
// or if a new one fails.
func (reg *Registry) locate(ctx context.Context, p Proxy) ([]Target, error) {
	reg.mu.Lock()
	last, ok := reg.located[p.Text]
	reg.mu.Unlock()
	old := ok && time.Since(last.foundAt) < locationValid
	if ok && time.Since(last.foundAt) < locationFresh || old && time.Since(last.failedAt) < dnsRetry {
		return last.targets, nil
	}
	targets, err := reg.resolve(ctx, p)
	switch {
	case err == nil:
		reg.storeLocation(p, location{targets: targets, foundAt: time.Now()})
		return targets, nil
	case old && ctx.Err() == nil:
		reg.mu.Lock()
		if l, ok := reg.located[p.Text]; ok {
			l.failedAt = time.Now()
			reg.located[p.Text] = l
		}
		reg.mu.Unlock()
		return last.targets, nil
	default:
		return nil, err
	}
}

func (reg *Registry) resolve(ctx context.Context, p Proxy) ([]Target, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	r := reg.Resolver
	if r == nil {
		r = &resolver.DNS{}
	}
	hops, err := resolver.Find(ctx, r, resolver.Proxy{
		Host: p.host, Port: uint16(p.Port), Transport: p.Transport, //nolint:gosec // checked by Parse
	}, reg.Endpoint.Addr().Addr())
	if err != nil {
		return nil, err
	}
	targets := make([]Target, 0, len(hops))
	for _, h := range hops {
		if unreachable := reg.Endpoint.CheckReachable(h.Addr.Addr()); unreachable != nil {
			err = fmt.Errorf("proxy %s: %w", p.Text, unreachable)
			continue
		}
		if h.Transport == "TLS" {
			reg.Endpoint.ExpectName(h.Addr.String(), p.host)
		}
		targets = append(targets, Target{p, h})
	}
	if len(targets) == 0 {
		return nil, err
	}
	return targets, nil
}

// IP returns the proxy's address if its host is one.
func (p Proxy) IP() (netip.Addr, bool) {
	ip, err := netip.ParseAddr(p.host)
	return ip.Unmap(), err == nil
}

// A Status says whether a trunk's carrier is reachable.
type Status string

// Statuses.
const (
	Up      Status = "up"      // a proxy answers
	Down    Status = "down"    // no proxy answers
	Unknown Status = "unknown" // no proxy was probed yet
)

// Status returns the status of a trunk.
func (reg *Registry) Status(t media.Trunk) Status {
	s := Unknown
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for _, text := range append([]string{t.Proxy}, t.Backups...) {
		for _, at := range reg.located[text].targets {
			switch v, known := reg.Health.Lookup(at.Address(), time.Now()); {
			case known && v == health.Up:
				return Up
			case known:
				s = Down
			}
		}
	}
	return s
}

// HasAddress reports whether one of the proxies has an address, at any port.
func (reg *Registry) HasAddress(all []Proxy, a netip.Addr) bool {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for _, p := range all {
		for _, at := range reg.located[p.Text].targets {
			if at.Hop.Addr.Addr() == a {
				return true
			}
		}
	}
	return false
}

// Paused reports whether a trunk takes no call now because a proxy asked for a
// pause and none is up. until is when that may change. It agrees with Targets.
func (reg *Registry) Paused(t media.Trunk) (until time.Time, paused bool) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	now := time.Now()
	for _, text := range append([]string{t.Proxy}, t.Backups...) {
		l, ok := reg.located[text]
		if !ok {
			return time.Time{}, false // a call finds out whether the proxy is up
		}
		for _, at := range l.targets {
			switch v, end := reg.Health.Status(at.Address(), now); {
			case v == health.Up:
				return time.Time{}, false
			case v == health.Paused && (!paused || end.Before(until)):
				until, paused = end, true
			}
		}
	}
	return until, paused
}

// Targets yields the targets for a call, best first: those that are up in the
// order given, then those that are down, in case their status is wrong. It
// locates each proxy when its turn comes. Without any target it yields an error:
// media.ErrPaused if none is up and one is paused.
func (reg *Registry) Targets(ctx context.Context, all []Proxy) iter.Seq2[Target, error] {
	return func(yield func(Target, error) bool) {
		var down []Target
		var failed error
		yielded, paused := 0, false
		offer := func(at Target) bool {
			yielded++
			return yielded <= maxTargets && yield(at, nil)
		}
		for _, p := range all {
			found, err := reg.locate(ctx, p)
			failed = errors.Join(failed, err)
			for _, at := range found {
				switch reg.Health.Admit(at.Address(), time.Now()) {
				case health.Up:
					if !offer(at) {
						return
					}
				case health.Down:
					down = append(down, at)
				case health.Paused:
					paused = true
				}
			}
		}
		if yielded == 0 && paused {
			yield(Target{}, media.ErrPaused)
			return
		}
		for _, at := range down {
			if !offer(at) {
				return
			}
		}
		if yielded == 0 {
			yield(Target{}, failed)
		}
	}
}

// HeaderValues returns the values of all headers with a name.
func HeaderValues(res *sip.Response, name string) (all []string) {
	for _, h := range res.GetHeaders(name) {
		all = append(all, h.Value())
	}
	return all
}

// RetryAfter returns the Retry-After of a response.
func RetryAfter(res *sip.Response) (time.Duration, bool) {
	h := res.GetHeader("Retry-After")
	if h == nil {
		return 0, false
	}
	digits := strings.TrimSpace(h.Value())
	if n := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); n >= 0 {
		digits = digits[:n] // a comment or a parameter follows the number
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return time.Duration(n) * time.Second, err == nil && n > 0
}
