package sip

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/locate"
)

// mostPlaces bounds the places that one call is offered to.
const mostPlaces = 4

// A proxy is where a trunk's requests go.
type proxy struct {
	text      string // as the trunk wrote it
	uri       sip.Uri
	transport string // "UDP", "TCP", "TLS", or "" where it does not say
}

// parseProxy reads "sip:host:port;transport=udp". The scheme sips stands for
// TLS.
func parseProxy(text string) (proxy, error) {
	if err := guard.Text("proxy", text); err != nil {
		return proxy{}, err
	}
	p := proxy{text: text}
	if err := sip.ParseUri(text, &p.uri); err != nil {
		return proxy{}, fmt.Errorf("proxy %q: %w", text, err)
	}
	p.uri.Host = strings.Trim(p.uri.Host, "[]")
	switch {
	case p.uri.Scheme != "sip" && p.uri.Scheme != "sips":
		return proxy{}, fmt.Errorf("proxy %q: want the scheme sip or sips", text)
	case p.uri.User != "" || p.uri.Host == "" || len(p.uri.Headers) > 0:
		return proxy{}, fmt.Errorf("proxy %q: want sip:host:port", text)
	case p.uri.Port < 0 || p.uri.Port > 0xffff:
		return proxy{}, fmt.Errorf("proxy %q: port %d", text, p.uri.Port)
	}
	if t, ok := p.uri.UriParams.Get("transport"); ok {
		p.transport = strings.ToUpper(t)
	}
	switch {
	case p.uri.Scheme == "sips" && (p.transport == "" || p.transport == "TCP" || p.transport == "TLS"):
		p.transport = "TLS"
	case p.uri.Scheme == "sips", p.transport != "" && p.transport != "UDP" && p.transport != "TCP" && p.transport != "TLS":
		return proxy{}, fmt.Errorf("proxy %q: transport is none of udp, tcp and tls", text)
	}
	p.uri.Scheme = "sip"
	return p, nil
}

// host is how the proxy's host stands in a URI.
func (p proxy) host() string {
	if strings.Contains(p.uri.Host, ":") {
		return "[" + p.uri.Host + "]"
	}
	return p.uri.Host
}

// A place is one address that may take a call.
type place struct {
	proxy proxy
	hop   locate.Hop
}

func (p place) address() health.Address {
	return health.Address{Transport: p.hop.Transport, At: p.hop.Addr}
}

// proxies reads all proxies of a trunk, the preferred first.
func proxies(t media.Trunk) ([]proxy, error) {
	all := make([]proxy, 0, 1+len(t.Backups))
	for _, text := range append([]string{t.Proxy}, t.Backups...) {
		p, err := parseProxy(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// find locates a proxy.
func (u *UA) find(ctx context.Context, p proxy) ([]place, error) {
	r := u.Resolver
	if r == nil {
		r = &locate.DNS{}
	}
	hops, err := locate.Find(ctx, r, locate.Proxy{
		Host: p.uri.Host, Port: uint16(p.uri.Port), Transport: p.transport, //nolint:gosec // checked by parseProxy
	}, u.endpoint.Addr().Addr())
	if err != nil {
		return nil, err
	}
	places := make([]place, 0, len(hops))
	for _, h := range hops {
		if h.Transport == "TLS" {
			u.endpoint.Expect(h.Addr.String(), p.uri.Host)
		}
		places = append(places, place{p, h})
	}
	return places, nil
}

// errBarred is why a trunk is not called at all for now.
var errBarred = errors.New("the trunk asked to be left alone for a while")

// places yields where a call may be sent, the best first: those that are up in
// the order of the trunk's proxies, and then those that are down, lest a call
// is lost to a wrong verdict. A proxy is located when its turn comes.
func (u *UA) places(ctx context.Context, all []proxy) iter.Seq2[place, error] {
	return func(yield func(place, error) bool) {
		var down []place
		var failed error
		yielded := 0
		for _, p := range all {
			found, err := u.find(ctx, p)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			for _, pl := range found {
				switch u.health.Verdict(pl.address(), time.Now()) {
				case health.Up:
					if yielded++; yielded > mostPlaces || !yield(pl, nil) {
						return
					}
				case health.Down:
					down = append(down, pl)
				case health.Barred:
					failed = errors.Join(failed, errBarred)
				}
			}
		}
		for _, pl := range down {
			if yielded++; yielded > mostPlaces || !yield(pl, nil) {
				return
			}
		}
		if yielded == 0 {
			yield(place{}, failed)
		}
	}
}

// isTimeout says that connecting took too long.
func isTimeout(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}
