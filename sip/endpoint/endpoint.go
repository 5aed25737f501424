// Package endpoint is what every SIP user agent of the house stands on: its
// sockets, its transactions, and who answers for which dialog. It answers what
// needs no judgement: OPTIONS, and methods that nobody here speaks.
package endpoint

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/ladder"
)

// Allow is the value of the Allow header.
const Allow = "INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE, INFO, NOTIFY"

// Supported is the value of the Supported header.
const Supported = "timer, 100rel"

// settle is how long the last messages may take to be dealt with.
const settle = 50 * time.Millisecond

// ErrClosed is returned once the endpoint is closing.
var ErrClosed = errors.New("sip endpoint is closed")

// An Endpoint is one user agent's footing. The exported fields are its wiring
// and must not change after Start.
type Endpoint struct {
	// Listen is the address of UDP and TCP: "127.0.0.1:5060". Port 0 lets the
	// kernel choose.
	Listen string
	// Secure is how TLS is spoken.
	Secure Secure
	// Public is the address to tell peers, where it is not that of Listen.
	Public netip.Addr
	// Name is the User-Agent header.
	Name string
	// Log takes warnings; nil drops them.
	Log *slog.Logger
	// Invite takes an INVITE that begins a call, and responds to it before it
	// returns. It has a goroutine of its own; nil refuses all.
	Invite func(req *sip.Request, tx sip.ServerTransaction)
	// Options is the status that an OPTIONS outside a dialog is answered with;
	// nil is 200, or 503 while the endpoint drains.
	Options func() int
	// Other takes requests of methods that the endpoint does not speak, and
	// responds to them before it returns; nil refuses them.
	Other func(req *sip.Request, tx sip.ServerTransaction)
	// Before sees each datagram before anything else does; nil does not.
	Before func(data []byte)
	// Sockets opens what is listened on over UDP and TCP, at the address given;
	// nil opens those of the kernel.
	Sockets func(addr string) (net.PacketConn, net.Listener, error)
	// Trusted says which addresses may send as much as they like; nil trusts
	// those only that a request was sent to in the last 10 minutes.
	Trusted func(netip.Addr) bool
	// MaxInbound is how many requests outside dialogs are dealt with at once;
	// those beyond are answered with 503. 0 is 1,000.
	MaxInbound int

	filter   guard.Filter
	merges   guard.Merges
	fresh    atomic.Int64 // requests outside dialogs that are dealt with
	secret   [32]byte     // of the tags of answers that nothing is kept of
	log      *guard.Log
	addr     netip.AddrPort
	public   netip.AddrPort
	ua       *sipgo.UserAgent
	client   *sipgo.Client
	sockets  []func() error
	serving  sync.WaitGroup
	sending  sync.RWMutex // held while the library may open a socket
	deaf     atomic.Bool  // nothing is read or begun any more
	work     group
	entrance *entrance
	mu       sync.Mutex
	parties  map[dialog.Key]Party
	ladders  map[string]*ladder.Ladder // by Call-ID
	names    map[string]expectation    // to be proved over TLS, by address
	opening  map[string]chan struct{}  // connections over TLS, by address
	closing  bool
	draining bool
	closed   chan struct{} // when Close begins
	// abandoned is closed when Close waits no longer: nothing is connected to
	// any more.
	abandoned chan struct{}
}

// Start opens the sockets and answers from then on.
func (e *Endpoint) Start() error {
	base := e.Log
	if base == nil {
		base = slog.New(slog.DiscardHandler)
	}
	guard.Library()
	e.log = guard.NewLog(base.Handler())
	e.parties = map[dialog.Key]Party{}
	e.ladders, e.names, e.opening = map[string]*ladder.Ladder{}, map[string]expectation{}, map[string]chan struct{}{}
	e.closed, e.abandoned = make(chan struct{}), make(chan struct{})
	e.filter.Trusted = e.Trusted
	_, _ = rand.Read(e.secret[:]) // it never fails
	udp, tcp, err := e.open()
	if err != nil {
		return err
	}
	if err = e.openSecure(tcp.Addr()); err == nil {
		if err = e.build(slog.New(e.log)); err != nil {
			_ = e.entrance.Close()
		}
	}
	if err != nil {
		_, _ = udp.Close(), tcp.Close()
		return err
	}
	guarded := guard.NewListener(tcp, &e.filter, nil)
	e.sockets = []func() error{udp.Close, guarded.Close, e.entrance.Close}
	// Serving ends when the sockets are closed, and says so with an error.
	e.serving.Go(func() { _ = e.ua.TransportLayer().ServeTCP(guarded) })
	e.serving.Go(func() { _ = e.ua.TransportLayer().ServeTLS(e.entrance) })
	if e.entrance.inner != nil {
		e.serving.Go(func() { e.entrance.listen() })
	}
	e.serve(udp)
	return nil
}

// serve has the library read a socket, and returns once it does.
func (e *Endpoint) serve(udp net.PacketConn) {
	ready := make(chan struct{})
	told := sync.OnceFunc(func() { close(ready) })
	reader := guard.NewReader(udp, told, func() { e.serve(udp) }, e.closed)
	e.serving.Go(func() {
		defer told() // where the socket is closed by now
		_ = e.ua.TransportLayer().ServeUDP(reader)
	})
	<-ready
}

// openSecure opens the entrance for TLS. Where nobody listens there, its
// address is other.
func (e *Endpoint) openSecure(other net.Addr) error {
	if e.Secure.Listen == "" {
		e.entrance = newEntrance(other, nil)
		return nil
	}
	if e.Secure.Certificate == nil {
		return errors.New("listen for sip over TLS: no certificate")
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", e.Secure.Listen)
	if err != nil {
		return fmt.Errorf("listen for sip over TLS: %w", err)
	}
	config := e.Secure.server()
	e.entrance = newEntrance(l.Addr(), guard.NewListener(l, &e.filter, func(c net.Conn) net.Conn { return tls.Server(c, config) }))
	return nil
}

// open binds UDP and TCP to the same port.
func (e *Endpoint) open() (net.PacketConn, net.Listener, error) {
	open := e.Sockets
	if open == nil {
		open = bind
	}
	udp, tcp, err := open(e.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for sip: %w", err)
	}
	at, ok := udp.LocalAddr().(*net.UDPAddr)
	if !ok {
		return nil, nil, errors.Join(errors.New("listen for sip: the socket is not of UDP"), udp.Close(), tcp.Close())
	}
	e.addr = netip.AddrPortFrom(at.AddrPort().Addr().Unmap(), at.AddrPort().Port())
	e.public = e.addr
	if e.Public.IsValid() {
		e.public = netip.AddrPortFrom(e.Public, e.addr.Port())
	}
	return udp, tcp, nil
}

// bind opens sockets of the kernel.
func bind(addr string) (net.PacketConn, net.Listener, error) {
	var lc net.ListenConfig
	ctx := context.Background()
	var failed error
	for range 20 { // the kernel may choose a port that only one of them has free
		udp, err := lc.ListenPacket(ctx, "udp", addr)
		if err != nil {
			return nil, nil, err
		}
		tcp, err := lc.Listen(ctx, "tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp, nil
		}
		failed = err
		_ = udp.Close()
		if !strings.HasSuffix(addr, ":0") {
			break
		}
	}
	return nil, nil, failed
}

// build wires the library.
func (e *Endpoint) build(log *slog.Logger) error {
	ua, err := sipgo.NewUA(
		sipgo.WithUserAgent(e.Name),
		// The library opens nothing over TLS itself: see entrance.
		sipgo.WithUserAgenTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}),
		sipgo.WithUserAgentTransportLayerOptions(
			sip.WithTransportLayerLogger(log),
			sip.WithTransportLayerReadFilter(e.read),
		),
		sipgo.WithUserAgentTransactionLayerOptions(
			sip.WithTransactionLayerLogger(log),
			// A response that nobody waits for any more: repeated, or forged.
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
	ua.TransportLayer().OnMessage(e.heard)
	e.ua, e.client = ua, client
	e.routes(server)
	return nil
}

func (e *Endpoint) read(in sip.TransportReadProps, data []byte) ([]byte, error) {
	if e.deaf.Load() {
		return nil, nil
	}
	if e.Before != nil {
		e.Before(data)
	}
	return e.filter.Read(in, data)
}

// Addr is where the endpoint listens over UDP and TCP.
func (e *Endpoint) Addr() netip.AddrPort { return e.addr }

// SecureAddr is where the endpoint listens over TLS; invalid where it does not.
func (e *Endpoint) SecureAddr() netip.AddrPort {
	if a, ok := e.entrance.addr.(*net.TCPAddr); ok && e.entrance.inner != nil {
		return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	return netip.AddrPort{}
}

// Ingress is what came in and was not served.
func (e *Endpoint) Ingress() guard.Counts {
	counts := e.filter.Counts()
	counts.Unreadable = e.log.Unreadable()
	return counts
}

// Drain has OPTIONS answered with 503, so that peers look elsewhere. Calls
// that are up go on.
func (e *Endpoint) Drain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
}

// Closing is closed when Close begins.
func (e *Endpoint) Closing() <-chan struct{} { return e.closed }

// Go runs f on a goroutine that Close waits for. It is false, and f not run,
// once the endpoint is closed for good.
func (e *Endpoint) Go(f func()) bool { return e.work.run(f) }

// Hold has Close wait for release too. It is false once the endpoint is closed
// for good.
func (e *Endpoint) Hold() (release func(), ok bool) {
	if !e.work.enter() {
		return nil, false
	}
	return sync.OnceFunc(e.work.leave), true
}

// Close hangs up every dialog, waits until that is done or ctx ends, and closes
// the sockets. It may be called twice.
func (e *Endpoint) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closing {
		e.closing = true
		close(e.closed)
	}
	parties := slices.Collect(maps.Values(e.parties))
	e.mu.Unlock()
	for _, p := range parties {
		_ = p.Hangup(media.LocalHangup) //nolint:contextcheck // what hangs up outlives Close
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
	close(e.abandoned)
	if err != nil { // what is being written may never be read
		_ = e.ua.TransportLayer().Pool("tcp").Clear()
		_ = e.ua.TransportLayer().Pool("tls").Clear()
	}
	// The library opens a socket for whatever it is to send, even while it is
	// being closed. So it is given nothing to send or to answer any more.
	e.sending.Lock()
	e.deaf.Store(true)
	e.sending.Unlock()
	// What was read before is on goroutines of the library that nobody can
	// wait for. They need microseconds.
	<-time.After(settle)
	err = errors.Join(err, e.ua.Close())
	for _, c := range sockets {
		err = errors.Join(err, c())
	}
	e.serving.Wait()
	e.work.wait(context.Background()) //nolint:contextcheck // without sockets and transactions nothing can hang
	return err
}
