// Package endpoint runs the sockets and transactions of a SIP user agent and
// passes each request to the handler of its dialog. It answers OPTIONS and
// unsupported methods itself.
package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/resolver"
	"github.com/parley-voice/parley/sip/sanitize"
)

// Allow is the value of the Allow header.
const Allow = "INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE, INFO, NOTIFY"

// Supported is the value of the Supported header.
const Supported = "timer, 100rel"

// settleTime is how long Close lets the library finish messages already read.
const settleTime = 50 * time.Millisecond

// ErrClosed is returned once the endpoint is closing.
var ErrClosed = errors.New("sip endpoint is closed")

// An Endpoint holds the sockets, transactions and dialogs of one user agent. Its
// exported fields must not change after Start.
type Endpoint struct {
	// Listen is the UDP and TCP address, such as "127.0.0.1:5060". With port 0
	// the kernel chooses the port.
	Listen string
	TLS    TLS
	// Public is the address in Via and Contact; invalid means the address of
	// Listen.
	Public netip.Addr
	// Name is the User-Agent header.
	Name string
	// Log receives warnings; nil drops them.
	Log *slog.Logger
	// OnInvite handles an INVITE outside a dialog on a goroutine of its own. It
	// must respond before it returns. nil refuses all with 403.
	OnInvite func(req *sip.Request, tx sip.ServerTransaction)
	// OptionsStatus is the status for an OPTIONS outside a dialog; nil means
	// 200, or 503 while the endpoint drains.
	OptionsStatus func() int
	// OnOther handles requests with methods that are not in Allow. It must
	// respond before it returns. nil refuses them with 405.
	OnOther func(req *sip.Request, tx sip.ServerTransaction)
	// OnDatagram receives each datagram before it is filtered; nil is skipped.
	OnDatagram func(data []byte)
	// OpenSockets opens the UDP and TCP sockets for an address; nil opens
	// sockets of the kernel.
	OpenSockets func(addr string) (net.PacketConn, net.Listener, error)
	// IsTrusted reports whether an address is exempt from the rate limit; nil
	// exempts only addresses that were sent a request in the last 10 minutes.
	IsTrusted func(netip.Addr) bool
	// Resolver finds hosts that peers name; nil uses the system's.
	Resolver resolver.Resolver
	// MaxInbound is the number of requests outside dialogs handled at once; more
	// are answered with 503. 0 means 1,000.
	MaxInbound int

	filter    sanitize.Filter
	admission admission
	log       *sanitize.LogHandler
	local     localAddr
	ua        *sipgo.UserAgent
	client    *sipgo.Client
	serving   sync.WaitGroup
	work      group
	dialogs   dialogTable
	calls     callTable
	guard     sourceGuard
	tls       tlsConns
	conns     connector
	invites   inviteGuard
	draining  atomic.Bool
	closed    chan struct{} // closed when Close begins
	closeOnce sync.Once
	mu        sync.Mutex
	sockets   []func() error // functions that close the sockets; nil once they are closed
}

// localAddr holds two addresses: the one that the endpoint listens on, and the one that it gives to peers.
type localAddr struct{ listen, public netip.AddrPort }

// pin makes a UDP request leave from the listening socket. Over TCP the library
// finds or opens a connection to the destination.
func (a localAddr) pin(req *sip.Request) {
	req.Laddr = sip.Addr{}
	if req.Transport() == "UDP" {
		req.Laddr = sip.Addr{IP: net.IP(a.listen.Addr().AsSlice()), Port: int(a.listen.Port())}
	}
}

// set takes the address of the UDP socket; public is optional.
func (a *localAddr) set(udp net.PacketConn, public netip.Addr) error {
	at, ok := udp.LocalAddr().(*net.UDPAddr)
	if !ok {
		return errors.New("listen for sip: not a UDP socket")
	}
	a.listen = netip.AddrPortFrom(at.AddrPort().Addr().Unmap(), at.AddrPort().Port())
	a.public = a.listen
	if public.IsValid() {
		a.public = netip.AddrPortFrom(public, a.listen.Port())
	}
	return nil
}

// Start opens the sockets and begins to answer requests.
func (e *Endpoint) Start() error {
	base := e.Log
	if base == nil {
		base = slog.New(slog.DiscardHandler)
	}
	sanitize.ConfigureLibrary()
	e.log = sanitize.NewLogHandler(base.Handler())
	e.closed = make(chan struct{})
	e.filter.AlwaysTrusted = e.IsTrusted
	e.admission.init(e.MaxInbound)
	open := e.OpenSockets
	if open == nil {
		open = bind
	}
	udp, tcp, err := open(e.Listen)
	if err != nil {
		return fmt.Errorf("listen for sip: %w", err)
	}
	if err = e.local.set(udp, e.Public); err == nil {
		err = e.tls.open(e.TLS, tcp.Addr(), &e.filter)
	}
	if err == nil {
		if err = e.build(slog.New(e.log)); err != nil {
			_ = e.tls.listener.Close()
		}
	}
	if err != nil {
		_, _ = udp.Close(), tcp.Close()
		return err
	}
	guarded := sanitize.NewListener(tcp, &e.filter, nil)
	e.sockets = []func() error{udp.Close, guarded.Close, e.tls.listener.Close}
	// These functions return an error when their socket is closed.
	e.serving.Go(func() { _ = e.ua.TransportLayer().ServeTCP(guarded) })
	e.serving.Go(func() { _ = e.ua.TransportLayer().ServeTLS(e.tls.listener) })
	if e.tls.listener.inner != nil {
		e.serving.Go(e.tls.listener.listen)
	}
	e.serve(guardedConn{udp, &e.invites})
	return nil
}

// serve makes the library read a socket and returns once it does.
func (e *Endpoint) serve(udp net.PacketConn) {
	ready := make(chan struct{})
	signal := sync.OnceFunc(func() { close(ready) })
	reader := sanitize.NewReader(udp, signal, func() { e.serve(udp) }, e.closed)
	e.serving.Go(func() {
		defer signal() // the socket may already be closed
		_ = e.ua.TransportLayer().ServeUDP(reader)
	})
	<-ready
}

// bind opens UDP and TCP sockets on the same port.
func bind(addr string) (net.PacketConn, net.Listener, error) {
	var lc net.ListenConfig
	ctx := context.Background()
	var last error
	for range 20 { // the port that the kernel chose for UDP may be taken for TCP
		udp, err := lc.ListenPacket(ctx, "udp", addr)
		if err != nil {
			return nil, nil, err
		}
		tcp, err := lc.Listen(ctx, "tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp, nil
		}
		last = err
		_ = udp.Close()
		if !strings.HasSuffix(addr, ":0") {
			break
		}
	}
	return nil, nil, last
}

func (e *Endpoint) build(log *slog.Logger) error {
	ua, err := sipgo.NewUA(
		sipgo.WithUserAgent(e.Name),
		// tlsConns opens all TLS connections. The pool of roots is empty, so the library can open none itself.
		sipgo.WithUserAgenTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}),
		sipgo.WithUserAgentTransportLayerOptions(
			sip.WithTransportLayerLogger(log),
			sip.WithTransportLayerReadFilter(e.read),
		),
		sipgo.WithUserAgentTransactionLayerOptions(
			sip.WithTransactionLayerLogger(log),
			// Responses without a transaction are late retransmissions or forged.
			sip.WithTransactionLayerUnhandledResponseHandler(func(*sip.Response) {}),
		),
	)
	if err != nil {
		return fmt.Errorf("build sip: %w", err)
	}
	client, err := sipgo.NewClient(ua, sipgo.WithClientLogger(log))
	if err != nil {
		return fmt.Errorf("build sip client: %w", err)
	}
	server, err := sipgo.NewServer(ua, sipgo.WithServerLogger(log))
	if err != nil {
		return fmt.Errorf("build sip server: %w", err)
	}
	// The library passes each response to a goroutine of its own, where a final
	// one may overtake a 180. This hook sees them in the order of arrival.
	ua.TransportLayer().OnMessage(func(msg sip.Message) {
		if res, ok := msg.(*sip.Response); ok {
			e.TraceReceived(res)
		}
	})
	e.ua, e.client = ua, client
	e.conns.init(ua.TransportLayer(), &e.tls, &e.work)
	e.guard = sourceGuard{
		calls: &e.calls, dialogs: &e.dialogs, filter: &e.filter, log: e.Log, resolver: e.Resolver,
		local: e.local.listen.Addr(), work: &e.work, withTimeout: e.conns.withTimeout,
	}
	e.route(server)
	return nil
}

func (e *Endpoint) read(in sip.TransportReadProps, data []byte) ([]byte, error) {
	if e.conns.stopped.Load() {
		return nil, nil
	}
	if e.OnDatagram != nil {
		e.OnDatagram(data)
	}
	data, err := e.filter.Read(in, data)
	if len(data) > 0 && in.Transport == "UDP" && e.guard.isForeignResponse(in.RemoteAddr, data) {
		return nil, nil
	}
	return data, err
}

// Addr returns the UDP and TCP address.
func (e *Endpoint) Addr() netip.AddrPort { return e.local.listen }

// TLSAddr returns the TLS address; it is invalid if the endpoint does not listen
// for TLS.
func (e *Endpoint) TLSAddr() netip.AddrPort { return e.tls.addr() }

// Ingress counts the received messages that were not served.
func (e *Endpoint) Ingress() sanitize.Counts {
	counts := e.filter.Counts()
	counts.Unreadable = e.log.Unreadable()
	return counts
}

// Drain makes the endpoint answer OPTIONS with 503, so that peers choose another
// server. Calls continue.
func (e *Endpoint) Drain() { e.draining.Store(true) }

// Closing is closed when Close begins.
func (e *Endpoint) Closing() <-chan struct{} { return e.closed }

// Go runs f on a goroutine that Close waits for. It returns false, without
// running f, once the endpoint is closed.
func (e *Endpoint) Go(f func()) bool { return e.work.run(f) }

// Hold makes Close wait for release. ok is false once the endpoint is closed.
func (e *Endpoint) Hold() (release func(), ok bool) {
	if !e.work.add() {
		return nil, false
	}
	return sync.OnceFunc(e.work.done), true
}

// Close hangs up every dialog, waits until that is done or ctx ends, and closes
// the sockets. It may be called twice.
func (e *Endpoint) Close(ctx context.Context) error {
	e.draining.Store(true)
	e.closeOnce.Do(func() { close(e.closed) })
	for _, h := range e.dialogs.close() {
		_ = h.Hangup(media.LocalHangup) //nolint:contextcheck // the BYE outlives Close
	}
	var err error
	if !e.work.wait(ctx) {
		err = fmt.Errorf("close sip: %w", ctx.Err())
	}
	e.mu.Lock()
	sockets := e.sockets
	e.sockets = nil
	e.mu.Unlock()
	if sockets == nil {
		return err
	}
	e.conns.stop(err != nil)
	// The library processes messages that it has read on goroutines that cannot
	// be waited for. They need microseconds.
	<-time.After(settleTime)
	err = errors.Join(err, e.ua.Close())
	for _, c := range sockets {
		err = errors.Join(err, c())
	}
	e.serving.Wait()
	e.work.wait(context.Background()) //nolint:contextcheck // without sockets and transactions it ends soon
	return err
}
