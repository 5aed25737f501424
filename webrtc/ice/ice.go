// Package ice has the sockets of web calls: one UDP port for all of them, a TCP
// port for who gets through nothing else, and what browsers are told to find them.
package ice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media/gate"
)

// How long a path may be silent before it is taken for broken, and for lost
// (RFC 8445, RFC 7675). A leg gives up before the last.
const (
	brokenAfter = 4 * time.Second
	lostAfter   = 25 * time.Second
	aliveEvery  = time.Second
)

// A Config says where web calls come in.
type Config struct {
	// UDP is where all media comes in; port 0 lets the kernel choose.
	UDP netip.AddrPort
	// TCP is where media comes in from networks that let no UDP through (RFC
	// 6544); not valid: nowhere.
	TCP netip.AddrPort
	// Public is the address that browsers reach us at, where it is another.
	Public netip.Addr
	// Opens lets peer connections open TCP connections of their own, as browsers
	// do; ours wait for them.
	Opens bool
	// Through are TURN servers that peer connections go through and no other way, as
	// browsers do where a page asks for it; ours are reached directly.
	Through []Server
	Log     *slog.Logger
}

// An Endpoint is where web calls come in. It makes peer connections.
type Endpoint struct {
	api *webrtc.API
	mu  sync.Mutex // held by who reads or renews the certificate
	how webrtc.Configuration
	// Addresses that we are bound to, and told browsers.
	bind, told netip.Addr

	udp *net.UDPConn
	tcp net.Listener
	mux []interface{ Close() error }
}

// Open binds the sockets.
func Open(ctx context.Context, c Config) (*Endpoint, error) {
	e := &Endpoint{bind: c.UDP.Addr(), told: c.UDP.Addr()}
	settings := webrtc.SettingEngine{LoggerFactory: Logger(c.Log)}
	if err := e.listen(ctx, c, &settings); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	settings.SetICETimeouts(brokenAfter, lostAfter, aliveEvery)
	settings.SetIncludeLoopbackCandidate(c.UDP.Addr().IsLoopback())
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled) // nothing of ours is hidden, and theirs is answered as a peer
	settings.SetReceiveMTU(1500)
	settings.DisableActiveTCP(!c.Opens)
	if c.Public.IsValid() {
		e.told = c.Public
		rule := webrtc.ICEAddressRewriteRule{External: []string{c.Public.String()}, AsCandidateType: webrtc.ICECandidateTypeHost}
		if err := settings.SetICEAddressRewriteRules(rule); err != nil {
			return nil, errors.Join(fmt.Errorf("public address: %w", err), e.Close())
		}
	}
	engine, err := codecs()
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	reports := &interceptor.Registry{}
	if err = webrtc.ConfigureRTCPReports(reports); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for _, s := range c.Through {
		e.how.ICETransportPolicy = webrtc.ICETransportPolicyRelay
		e.how.ICEServers = append(e.how.ICEServers, webrtc.ICEServer{URLs: s.URLs, Username: s.Username, Credential: s.Credential})
	}
	e.api = webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(reports))
	if _, err = e.configuration(time.Now()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// listen binds the sockets, and tells settings of them.
func (e *Endpoint) listen(ctx context.Context, c Config, settings *webrtc.SettingEngine) error {
	logger := settings.LoggerFactory.NewLogger("ice")
	var err error
	if e.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(c.UDP)); err != nil {
		return fmt.Errorf("udp: %w", err)
	}
	// Hundreds of calls come through this one socket.
	_ = e.udp.SetReadBuffer(socketBuffer) // as much as the kernel allows
	_ = e.udp.SetWriteBuffer(socketBuffer)
	udp := ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: e.udp, Logger: logger})
	e.mux = append(e.mux, udp)
	settings.SetICEUDPMux(udp)
	networks := []webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6}
	if c.TCP.IsValid() {
		var lc net.ListenConfig
		open, err := lc.Listen(ctx, "tcp", c.TCP.String())
		if err != nil {
			return fmt.Errorf("tcp: %w", err)
		}
		// A silent connection is closed after 10 s. The library accepts nothing more
		// once that has failed.
		e.tcp = gate.NewListener(open, &gate.Gate{Most: mostTCP, Each: mostTCPEach}, nil)
		tcp := ice.NewTCPMuxDefault(ice.TCPMuxParams{
			Listener: e.tcp, Logger: logger, ReadBufferSize: 32, WriteBufferSize: 64 << 10,
			FirstStunBindTimeout: 10 * time.Second, AliveDurationForConnFromStun: 10 * time.Second,
		})
		e.mux = append(e.mux, tcp)
		settings.SetICETCPMux(tcp)
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	if c.Opens {
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	settings.SetNetworkTypes(networks)
	return nil
}

const (
	socketBuffer = 2 << 20
	mostTCP      = 1000 // connections
	mostTCPEach  = 50   // of one network: calls of an office behind one address
)

// UDP is where media comes in.
func (e *Endpoint) UDP() netip.AddrPort {
	a, _ := e.udp.LocalAddr().(*net.UDPAddr)
	return a.AddrPort()
}

// TCP is where media comes in over TCP; not valid where it does not.
func (e *Endpoint) TCP() netip.AddrPort {
	if e.tcp == nil {
		return netip.AddrPort{}
	}
	a, _ := e.tcp.Addr().(*net.TCPAddr)
	return a.AddrPort()
}

// Connect makes a peer connection.
func (e *Endpoint) Connect() (*webrtc.PeerConnection, error) {
	how, err := e.configuration(time.Now())
	if err != nil {
		return nil, err
	}
	return e.api.NewPeerConnection(how)
}

// configuration is how peer connections are made now, with a certificate that is
// good for longer than they last.
func (e *Endpoint) configuration(now time.Time) (webrtc.Configuration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.how.Certificates; len(c) == 0 || c[0].Expires().Sub(now) < renewBefore {
		fresh, err := certificate()
		if err != nil {
			return webrtc.Configuration{}, err
		}
		e.how.Certificates = []webrtc.Certificate{fresh} // who has the old one keeps it
	}
	return e.how, nil
}

// renewBefore is how long a certificate is good still when another is made.
const renewBefore = 7 * 24 * time.Hour

// Reaches says whether media may go to an address that a stranger names: not to
// this machine, its link or the networks behind it, unless browsers are told that
// we are there too.
func (e *Endpoint) Reaches(a netip.Addr) bool {
	a = a.Unmap()
	like := func(is func(netip.Addr) bool) bool { return is(e.bind.Unmap()) || is(e.told.Unmap()) }
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return false
	case a.IsLoopback():
		return like(netip.Addr.IsLoopback)
	case a.IsLinkLocalUnicast():
		return like(netip.Addr.IsLinkLocalUnicast)
	case a.IsPrivate():
		return like(netip.Addr.IsPrivate) || like(netip.Addr.IsLoopback) || e.told.IsUnspecified()
	}
	return true
}

// Close closes the sockets. Peer connections are to be closed before.
func (e *Endpoint) Close() error {
	var errs []error
	for _, m := range e.mux {
		errs = append(errs, m.Close())
	}
	if e.udp != nil {
		_ = e.udp.Close() // the mux did
	}
	if e.tcp != nil {
		_ = e.tcp.Close() // likewise
	}
	return errors.Join(errs...)
}

// Logger passes what the library logs to log; nil drops it.
func Logger(log *slog.Logger) logging.LoggerFactory { return &quiet{log: log} }

// quiet keeps the library's log: what a stranger's packets bring about is told
// at the debug level alone.
type quiet struct{ log *slog.Logger }

// NewLogger implements logging.LoggerFactory.
func (q *quiet) NewLogger(scope string) logging.LeveledLogger {
	if q.log == nil {
		return leveled{slog.New(slog.DiscardHandler)}
	}
	return leveled{q.log.With("part", scope)}
}
