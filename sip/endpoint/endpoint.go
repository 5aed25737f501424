// Package endpoint is what every SIP user agent of the house stands on: its
// sockets, its transactions, the dialogs that are up and their legs. It
// answers what needs no judgement: in-dialog requests, OPTIONS, and methods
// that nobody here speaks.
package endpoint

import (
	"context"
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
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/guard"
)

// Allow is the value of the Allow header.
const Allow = "INVITE, ACK, CANCEL, BYE, OPTIONS"

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
	// Public is the address to tell peers, where it is not that of Listen.
	Public netip.Addr
	// Name is the User-Agent header.
	Name string
	// Media carries the audio of the legs.
	Media *rtp.Transport
	// Log takes warnings; nil drops them.
	Log *slog.Logger
	// Invite takes an INVITE that begins a call, and responds to it before it
	// returns. It has a goroutine of its own; nil refuses all.
	Invite func(req *sip.Request, tx sip.ServerTransaction)
	// Before sees each datagram before anything else does; nil does not.
	Before func(data []byte)
	// FirstWithin and Within are how long the party of a leg may send no
	// media, in the beginning and later; 0 is for ever.
	FirstWithin, Within time.Duration

	filter   guard.Filter
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
	mu       sync.Mutex
	legs     map[dialog.Key]*Leg
	closing  bool
	draining bool
	closed   chan struct{} // when Close begins
	// abandoned is closed when Close waits no longer: nothing is connected to
	// any more.
	abandoned chan struct{}
}

// Start opens the sockets and answers from then on.
func (e *Endpoint) Start() error {
	if e.Media == nil {
		return errors.New("sip endpoint without media transport")
	}
	base := e.Log
	if base == nil {
		base = slog.New(slog.DiscardHandler)
	}
	guard.Library()
	e.log = guard.NewLog(base.Handler())
	e.legs = map[dialog.Key]*Leg{}
	e.closed, e.abandoned = make(chan struct{}), make(chan struct{})
	udp, tcp, err := e.open()
	if err != nil {
		return err
	}
	if err := e.build(slog.New(e.log)); err != nil {
		_, _ = udp.Close(), tcp.Close()
		return err
	}
	e.sockets = []func() error{udp.Close, tcp.Close}
	ready := make(chan struct{})
	first := &readyConn{PacketConn: udp, ready: sync.OnceFunc(func() { close(ready) })}
	// Serving ends when the sockets are closed, and says so with an error.
	e.serving.Go(func() { _ = e.ua.TransportLayer().ServeUDP(first) })
	e.serving.Go(func() { _ = e.ua.TransportLayer().ServeTCP(guard.NewListener(tcp)) })
	<-ready
	return nil
}

// open binds UDP and TCP to the same port.
func (e *Endpoint) open() (net.PacketConn, net.Listener, error) {
	var lc net.ListenConfig
	ctx := context.Background()
	var failed error
	for range 20 { // the kernel may choose a port that only one of them has free
		udp, err := lc.ListenPacket(ctx, "udp", e.Listen)
		if err != nil {
			return nil, nil, fmt.Errorf("listen for sip: %w", err)
		}
		e.addr = udp.LocalAddr().(*net.UDPAddr).AddrPort() //nolint:forcetypeassert // the address of a UDP socket
		e.addr = netip.AddrPortFrom(e.addr.Addr().Unmap(), e.addr.Port())
		tcp, err := lc.Listen(ctx, "tcp", e.addr.String())
		if err == nil {
			e.public = e.addr
			if e.Public.IsValid() {
				e.public = netip.AddrPortFrom(e.Public, e.addr.Port())
			}
			return udp, tcp, nil
		}
		failed = err
		_ = udp.Close()
		if !strings.HasSuffix(e.Listen, ":0") {
			break
		}
	}
	return nil, nil, fmt.Errorf("listen for sip: %w", failed)
}

// build wires the library.
func (e *Endpoint) build(log *slog.Logger) error {
	ua, err := sipgo.NewUA(
		sipgo.WithUserAgent(e.Name),
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

// Addr is where the endpoint listens.
func (e *Endpoint) Addr() netip.AddrPort { return e.addr }

// Legs is how many legs are up.
func (e *Endpoint) Legs() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.legs)
}

// Refused is how many messages were dropped unread, and how many could not be
// read.
func (e *Endpoint) Refused() (dropped, unreadable int64) {
	return e.filter.Dropped(), e.log.Unreadable()
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

// Close hangs up every leg, waits until that is done or ctx ends, and closes
// the sockets. It may be called twice.
func (e *Endpoint) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closing {
		e.closing = true
		close(e.closed)
	}
	legs := make([]*Leg, 0, len(e.legs))
	for _, l := range e.legs {
		legs = append(legs, l)
	}
	e.mu.Unlock()
	for _, l := range legs {
		_ = l.Hangup(media.LocalHangup) //nolint:contextcheck // what hangs up outlives Close
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

// A readyConn tells when it is first read: the library knows the socket then.
type readyConn struct {
	net.PacketConn

	ready func()
}

// ReadFrom implements net.PacketConn.
func (c *readyConn) ReadFrom(b []byte) (int, net.Addr, error) {
	c.ready()
	return c.PacketConn.ReadFrom(b)
}
