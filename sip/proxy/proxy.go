// Package proxy is what is known of the proxies of trunks: where they are, how
// they are, which realm is theirs, and that they know where we are.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/locate"
)

// mostPlaces bounds the places that one call is offered to.
const mostPlaces = 4

// A Proxy is where a trunk's requests go.
type Proxy struct {
	Text      string // as the trunk wrote it
	Port      int    // 0 where it does not say
	Transport string // "UDP", "TCP", "TLS", or "" where it does not say
	host      string
}

// Parse reads "sip:host:port;transport=udp". The scheme sips stands for TLS.
func Parse(text string) (Proxy, error) {
	if err := guard.Text("proxy", text); err != nil {
		return Proxy{}, err
	}
	var uri sip.Uri
	if err := sip.ParseUri(text, &uri); err != nil {
		return Proxy{}, fmt.Errorf("proxy %q: %w", text, err)
	}
	p := Proxy{Text: text, host: strings.Trim(uri.Host, "[]"), Port: uri.Port}
	switch {
	case uri.Scheme != "sip" && uri.Scheme != "sips":
		return Proxy{}, fmt.Errorf("proxy %q: want the scheme sip or sips", text)
	case uri.User != "" || p.host == "" || len(uri.Headers) > 0:
		return Proxy{}, fmt.Errorf("proxy %q: want sip:host:port", text)
	case uri.Port < 0 || uri.Port > 0xffff:
		return Proxy{}, fmt.Errorf("proxy %q: port %d", text, uri.Port)
	}
	t, _ := uri.UriParams.Get("transport")
	var ok bool
	if p.Transport, ok = transport(uri.Scheme, strings.ToUpper(t)); !ok {
		return Proxy{}, fmt.Errorf("proxy %q: transport is none of udp, tcp and tls", text)
	}
	return p, nil
}

func transport(scheme, said string) (t string, ok bool) {
	switch {
	case scheme == "sips" && said != "UDP":
		return "TLS", said == "" || said == "TCP" || said == "TLS"
	case scheme == "sips":
		return "", false
	default:
		return said, said == "" || said == "UDP" || said == "TCP" || said == "TLS"
	}
}

// Host is how the proxy's host stands in a URI.
func (p Proxy) Host() string {
	if strings.Contains(p.host, ":") {
		return "[" + p.host + "]"
	}
	return p.host
}

// URI is the proxy's own, without a user.
func (p Proxy) URI() sip.Uri { return sip.Uri{Scheme: "sip", Host: p.Host(), Port: p.Port} }

// A Place is one address that may take a call.
type Place struct {
	Proxy Proxy
	Hop   locate.Hop
}

// Address is the place as its health is known by.
func (p Place) Address() health.Address {
	return health.Address{Transport: p.Hop.Transport, At: p.Hop.Addr}
}

// All reads all proxies of a trunk, the preferred first.
func All(t media.Trunk) ([]Proxy, error) {
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

// A Book is what is known of all proxies. The exported fields are its wiring.
type Book struct {
	Endpoint *endpoint.Endpoint
	// Resolver finds proxies by name; nil is the system's.
	Resolver locate.Resolver
	// Registered, where set, is told of each registration, and how long it took.
	Registered func(ok bool, took time.Duration)
	// Log takes warnings; nil drops them.
	Log *slog.Logger
	// Health is how the addresses are.
	Health health.Book

	mu            sync.Mutex
	located       map[string]located // by proxy
	realms        map[string]string  // pinned, by proxy
	registrations map[duty]*registration
	running       map[duty]func() // stops it, and waits
	stopped       bool            // for good
}

const (
	// locateFor is how long the DNS may take.
	locateFor = 5 * time.Second
	// locateEvery is how often a proxy is located at most, and locateLast for
	// how long an old answer does where the DNS gives none.
	locateEvery = 30 * time.Second
	locateLast  = time.Hour
	// locateAgain is when the DNS is asked again after it gave none, where an
	// old answer does.
	locateAgain = 5 * time.Second
)

// located is where a proxy was found.
type located struct {
	places []Place
	at     time.Time
	failed time.Time // the last time that the DNS gave no answer since
}

// find locates a proxy. What was found lately is not looked for again, and
// what was found before does where the DNS is away.
func (b *Book) find(ctx context.Context, p Proxy) ([]Place, error) {
	b.mu.Lock()
	known, ok := b.located[p.Text]
	b.mu.Unlock()
	old := ok && time.Since(known.at) < locateLast
	if ok && time.Since(known.at) < locateEvery || old && time.Since(known.failed) < locateAgain {
		return known.places, nil
	}
	places, err := b.locate(ctx, p)
	switch {
	case err == nil:
		b.note(p, located{places: places, at: time.Now()})
		return places, nil
	case old && ctx.Err() == nil:
		b.mu.Lock()
		if l, ok := b.located[p.Text]; ok {
			l.failed = time.Now()
			b.located[p.Text] = l
		}
		b.mu.Unlock()
		return known.places, nil
	default:
		return nil, err
	}
}

func (b *Book) locate(ctx context.Context, p Proxy) ([]Place, error) {
	ctx, cancel := context.WithTimeout(ctx, locateFor)
	defer cancel()
	r := b.Resolver
	if r == nil {
		r = &locate.DNS{}
	}
	hops, err := locate.Find(ctx, r, locate.Proxy{
		Host: p.host, Port: uint16(p.Port), Transport: p.Transport, //nolint:gosec // checked by Parse
	}, b.Endpoint.Addr().Addr())
	if err != nil {
		return nil, err
	}
	places := make([]Place, 0, len(hops))
	for _, h := range hops {
		if h.Transport == "TLS" {
			b.Endpoint.Expect(h.Addr.String(), p.host)
		}
		places = append(places, Place{p, h})
	}
	return places, nil
}

// A Standing is how it stands with a trunk.
type Standing string

// Standings.
const (
	Up      Standing = "up"      // a proxy of it answers
	Down    Standing = "down"    // none does
	Unknown Standing = "unknown" // none was asked yet
)

// Standing is how it stands with a trunk, as far as this book knows.
func (b *Book) Standing(t media.Trunk) Standing {
	s := Unknown
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range append([]string{t.Proxy}, t.Backups...) {
		for _, at := range b.located[text].places {
			switch v, known := b.Health.Known(at.Address(), time.Now()); {
			case known && v == health.Up:
				return Up
			case known:
				s = Down
			}
		}
	}
	return s
}

// ErrBarred is why a trunk is not called at all for now.
var ErrBarred = errors.New("the trunk asked to be left alone for a while")

// Places yields where a call may be sent, the best first: those that are up in
// the order given, and then those that are down, lest a call is lost to a
// wrong verdict. A proxy is located when its turn comes. Where there is none,
// it yields why.
func (b *Book) Places(ctx context.Context, all []Proxy) iter.Seq2[Place, error] {
	return func(yield func(Place, error) bool) {
		var down []Place
		var failed error
		yielded := 0
		offer := func(at Place) bool {
			yielded++
			return yielded <= mostPlaces && yield(at, nil)
		}
		for _, p := range all {
			found, err := b.find(ctx, p)
			failed = errors.Join(failed, err)
			for _, at := range found {
				switch b.Health.Verdict(at.Address(), time.Now()) {
				case health.Up:
					if !offer(at) {
						return
					}
				case health.Down:
					down = append(down, at)
				case health.Barred:
					failed = errors.Join(failed, ErrBarred)
				}
			}
		}
		for _, at := range down {
			if !offer(at) {
				return
			}
		}
		if yielded == 0 {
			yield(Place{}, failed)
		}
	}
}

// Values are those of all headers of a name.
func Values(res *sip.Response, name string) (all []string) {
	for _, h := range res.GetHeaders(name) {
		all = append(all, h.Value())
	}
	return all
}

// RetryAfter is how long a response asks to be left alone.
func RetryAfter(res *sip.Response) (time.Duration, bool) {
	h := res.GetHeader("Retry-After")
	if h == nil {
		return 0, false
	}
	digits := strings.TrimSpace(h.Value())
	if n := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); n >= 0 {
		digits = digits[:n] // a comment or a parameter follows
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return time.Duration(n) * time.Second, err == nil && n > 0
}
