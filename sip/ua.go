// Package sip places calls over carriers' trunks (RFC 3261) and holds them. It
// takes no calls: what comes in from outside is refused the same way whoever
// it is for.
package sip

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/locate"
	"github.com/parley-voice/parley/sip/proxy"
)

// A Signer vouches for a caller number to whoever is called (RFC 8224).
type Signer interface {
	// Sign returns the value of the Identity header, or "" where it does not
	// vouch for from.
	Sign(from, to string, at time.Time) (identity string, err error)
}

// A Meter is told what RFC 6076 measures. It must not block.
type Meter interface {
	// Requested is told of the session request delay of each INVITE that got
	// further than 100 (section 4.3).
	Requested(delay time.Duration)
	// Invited is told of the final answer to each INVITE; 0 where none came.
	Invited(status int)
	// Ended is told of each leg that has ended.
	Ended(end leg.Ending)
	// Registered is told of each registration, and how long it took (section
	// 4.1).
	Registered(ok bool, delay time.Duration)
}

// A UA is our end of every trunk. The exported fields are its wiring and must
// not change after Start.
type UA struct {
	// Listen is where SIP is spoken, over UDP and TCP: "127.0.0.1:5060".
	Listen string
	// Public is the address to tell carriers, where it is not that of Listen.
	Public netip.Addr
	// Media carries the audio.
	Media *rtp.Transport
	// Log takes warnings; nil drops them.
	Log *slog.Logger
	// FirstMedia and MediaGap are how long a party may send no media after the
	// answer, and later, before its leg ends with media.MediaTimeout. Zero
	// means 30 s and 15 s, less than zero for ever.
	FirstMedia, MediaGap time.Duration
	// Resolver finds proxies by name; nil is the system's.
	Resolver locate.Resolver
	// Secure is how SIP is spoken over TLS.
	Secure endpoint.Secure
	// LeastSession is the shortest session interval that is taken (RFC 4028);
	// 0 is the 90 s that everybody takes.
	LeastSession time.Duration
	// Signer vouches for caller numbers; nil vouches for none.
	Signer Signer
	// Meter is told how calls go; nil is not.
	Meter Meter
	// Sockets opens what is listened on; nil opens UDP and TCP sockets.
	Sockets func(addr string) (net.PacketConn, net.Listener, error)

	endpoint *endpoint.Endpoint
	proxies  *proxy.Book
	rules    leg.Rules
	up       atomic.Int64  // legs
	quit     chan struct{} // closed when Close begins
	closing  sync.Once

	mu     sync.Mutex
	active int // attempts without an outcome
}

// Start opens the sockets.
func (u *UA) Start() error {
	u.quit = make(chan struct{})
	e := &endpoint.Endpoint{
		Listen: u.Listen, Secure: u.Secure, Public: u.Public, Name: "parley", Log: u.Log, Sockets: u.Sockets,
	}
	u.proxies = &proxy.Book{Endpoint: e, Resolver: u.Resolver, Log: u.Log}
	u.rules = leg.Rules{
		FirstWithin: orDefault(u.FirstMedia, 30*time.Second),
		Within:      orDefault(u.MediaGap, 15*time.Second),
		Least:       u.LeastSession,
		Up:          &u.up,
	}
	if u.Meter != nil {
		u.rules.Ended, u.proxies.Registered = u.Meter.Ended, u.Meter.Registered
	}
	if err := e.Start(); err != nil {
		return err
	}
	u.endpoint = e
	return nil
}

// Keep looks after the trunks given, and no longer after others: it asks their
// proxies how they are, and registers where a trunk wants it. It returns once
// what is not wanted any more has ended, which a carrier that takes no leave
// can draw out for 2 seconds.
func (u *UA) Keep(trunks []media.Trunk) { u.proxies.Keep(trunks) }

// Places is what is known of the addresses of trunks.
func (u *UA) Places() []health.State { return u.proxies.Health.States(time.Now()) }

// Standing is how it stands with a trunk: up, down or unknown.
func (u *UA) Standing(t media.Trunk) string { return string(u.proxies.Standing(t)) }

// Registrations is how the registrations stand that are kept.
func (u *UA) Registrations() []proxy.Registration { return u.proxies.Registrations() }

func orDefault(d, otherwise time.Duration) time.Duration {
	switch {
	case d == 0:
		return otherwise
	case d < 0:
		return 0
	default:
		return d
	}
}

// Addr is where the UA listens.
func (u *UA) Addr() netip.AddrPort { return u.endpoint.Addr() }

// Calls is how many calls are up, and how many are being dialled.
func (u *UA) Calls() (up, dialling int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return int(u.up.Load()), u.active
}

// Ingress is what came in and was not served.
func (u *UA) Ingress() guard.Counts { return u.endpoint.Ingress() }

// Drain tells carriers that ask (OPTIONS) to go elsewhere. Calls that are up
// go on, and calls may still be dialled.
func (u *UA) Drain() { u.endpoint.Drain() }

// Close cancels what is being dialled, hangs up what is up, and waits for the
// carriers' word, until ctx ends. Then it closes the sockets. It may be called
// twice.
func (u *UA) Close(ctx context.Context) error {
	u.closing.Do(func() { close(u.quit) })
	u.proxies.Stop()
	return u.endpoint.Close(ctx)
}
