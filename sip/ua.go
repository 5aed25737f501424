// Package sip places calls over carriers' trunks (RFC 3261). It accepts no calls:
// every request from outside is refused alike.
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
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
	"github.com/parley-voice/parley/sip/resolver"
	"github.com/parley-voice/parley/sip/sanitize"
)

// A Signer attests caller numbers (RFC 8224).
type Signer interface {
	// Sign returns the value of the Identity header, or "" if it does not attest
	// from.
	Sign(from, to string, at time.Time) (identity string, err error)
}

// A Meter receives the measurements of RFC 6076. Its methods must not block.
type Meter interface {
	// ObserveRequestDelay receives the session request delay of an INVITE that
	// got a response above 100 (section 4.3).
	ObserveRequestDelay(delay time.Duration)
	// CountInvite receives the final status of each INVITE, or 0 without a response.
	CountInvite(status int)
	// ObserveEnd receives the result of each leg.
	ObserveEnd(end leg.Ending)
	// ObserveRegistration receives the result and delay of each registration
	// (section 4.1).
	ObserveRegistration(ok bool, delay time.Duration)
}

// A UA places calls over all trunks. Its exported fields must not change after
// Start.
type UA struct {
	// Listen is the UDP and TCP address, such as "127.0.0.1:5060".
	Listen string
	// Public is the address sent to carriers; invalid means the address of
	// Listen.
	Public netip.Addr
	Media  *rtp.Transport
	// Log receives warnings; nil drops them.
	Log *slog.Logger
	// FirstMedia and MediaGap are how long a peer may send no media after the
	// answer and later, before the leg ends with media.MediaTimeout. 0 means 30 s
	// and 15 s; a negative value means no limit.
	FirstMedia, MediaGap time.Duration
	// ReportGap replaces MediaGap while RTCP reports arrive. 0 means 2 min.
	ReportGap time.Duration
	// Resolver finds proxies by name; nil uses the system's.
	Resolver resolver.Resolver
	TLS      endpoint.TLS
	// MinSession is the shortest session interval accepted (RFC 4028); 0 means 90
	// s.
	MinSession time.Duration
	// Signer attests caller numbers; nil attests none.
	Signer Signer
	// Meter receives measurements; nil is skipped.
	Meter Meter
	// OnPinned is called when Realms has a new realm; nil is skipped. It must not
	// block.
	OnPinned func()
	// OpenSockets opens the sockets for an address; nil opens UDP and TCP
	// sockets.
	OpenSockets func(addr string) (net.PacketConn, net.Listener, error)

	endpoint    *endpoint.Endpoint
	proxies     *proxy.Registry
	legSettings leg.Settings
	activeLegs  atomic.Int64  // legs that have not ended
	quit        chan struct{} // closed when Close begins
	closeOnce   sync.Once

	mu     sync.Mutex
	active int // attempts that have no outcome yet
}

// Start opens the sockets.
func (u *UA) Start() error {
	u.quit = make(chan struct{})
	e := &endpoint.Endpoint{
		Listen: u.Listen, TLS: u.TLS, Public: u.Public, Name: "parley", Log: u.Log, OpenSockets: u.OpenSockets, Resolver: u.Resolver,
	}
	u.proxies = &proxy.Registry{Endpoint: e, Resolver: u.Resolver, OnPinned: u.OnPinned, Log: u.Log}
	u.legSettings = leg.Settings{
		FirstMedia: orDefault(u.FirstMedia, 30*time.Second),
		MediaGap:   orDefault(u.MediaGap, 15*time.Second),
		MinSession: u.MinSession,
		Active:     &u.activeLegs,

		ReportGap: orDefault(u.ReportGap, 2*time.Minute),
	}
	if u.Meter != nil {
		u.legSettings.OnEnded, u.proxies.OnRegistered = u.Meter.ObserveEnd, u.Meter.ObserveRegistration
	}
	if err := e.Start(); err != nil {
		return err
	}
	u.endpoint = e
	return nil
}

// SetCertificates replaces the TLS certificate and roots for new connections.
// Calls and open connections stay.
func (u *UA) SetCertificates(s endpoint.TLS) error { return u.endpoint.SetCertificates(s) }

// SetTrunks probes the proxies of the given trunks and registers for trunks that
// want it. It stops probes and registrations of all others, which may take 2 s.
func (u *UA) SetTrunks(trunks []media.Trunk) { u.proxies.SetTrunks(trunks) }

// Probe sends an OPTIONS to the proxies of a trunk. It returns nil if one is up, and
// otherwise the reasons.
func (u *UA) Probe(ctx context.Context, t media.Trunk) error { return u.proxies.Probe(ctx, t) }

// ProxyStates returns the health of the trunks' addresses.
func (u *UA) ProxyStates() []health.State { return u.proxies.Health.States(time.Now()) }

// TrunkStatus returns "up", "down" or "unknown".
func (u *UA) TrunkStatus(t media.Trunk) string { return string(u.proxies.Status(t)) }

// AnyPaused reports whether a proxy of any trunk asked for a pause lately.
func (u *UA) AnyPaused() bool { return u.proxies.Health.AnyPaused(time.Now()) }

// Paused reports whether a trunk takes no call now because its proxies asked for
// a pause, and the earliest end.
func (u *UA) Paused(t media.Trunk) (until time.Time, paused bool) { return u.proxies.Paused(t) }

// Registrations returns the state of all registrations.
func (u *UA) Registrations() []proxy.Registration { return u.proxies.Registrations() }

// Realms returns the realms that proxies accepted credentials for and that are
// not stored yet, by proxy.
func (u *UA) Realms() map[string]string { return u.proxies.Realms() }

// RestoreRealms binds proxies to stored realms.
func (u *UA) RestoreRealms(realms map[string]string) { u.proxies.RestoreRealms(realms) }

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

// Addr returns the UDP and TCP address.
func (u *UA) Addr() netip.AddrPort { return u.endpoint.Addr() }

// Calls returns the number of connected calls and of attempts in progress.
func (u *UA) Calls() (connected, dialing int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return int(u.activeLegs.Load()), u.active
}

// Ingress counts the received messages that were not served.
func (u *UA) Ingress() sanitize.Counts { return u.endpoint.Ingress() }

// Drain makes the UA answer OPTIONS with 503. Calls continue, and new ones may be
// placed.
func (u *UA) Drain() { u.endpoint.Drain() }

// Close cancels attempts, hangs up calls, waits for the responses until ctx ends,
// and closes the sockets. It may be called twice.
func (u *UA) Close(ctx context.Context) error {
	u.closeOnce.Do(func() { close(u.quit) })
	u.proxies.Stop()
	return u.endpoint.Close(ctx)
}
