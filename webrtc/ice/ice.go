// Package ice provides the sockets of web calls: one UDP port, and a TCP port for networks that block UDP. It also
// lists the ICE servers for browsers.
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

	"github.com/parley-voice/parley/media/connlimit"
)

// Times without packets after which a path counts as disconnected or as failed (RFC 8445, RFC 7675). A leg ends before
// failedTimeout.
const (
	disconnectedTimeout = 4 * time.Second
	failedTimeout       = 25 * time.Second
	keepaliveInterval   = time.Second
)

// A Config sets the addresses of web calls.
type Config struct {
	// UDP is the media address. If the port is 0, the kernel chooses one.
	UDP netip.AddrPort
	// TCP is the media address for networks that block UDP (RFC 6544); invalid disables TCP.
	TCP netip.AddrPort
	// Public is the address at which browsers reach the endpoint; invalid means that of UDP.
	Public netip.Addr
	// ActiveTCP lets peer connections open TCP connections, as browsers do. A server only accepts them.
	ActiveTCP bool
	// RelayServers are TURN servers that peer connections must use, like browsers with iceTransportPolicy "relay". A
	// server uses none.
	RelayServers []Server
	Log          *slog.Logger
}

// An Endpoint owns the sockets of web calls and creates peer connections.
type Endpoint struct {
	api          *webrtc.API
	mu           sync.Mutex // held to read or renew the certificate
	config       webrtc.Configuration
	bind, public netip.Addr // bound address, and address at which browsers reach it

	udp *net.UDPConn
	tcp net.Listener
	mux []interface{ Close() error }
}

// Open binds the sockets.
func Open(ctx context.Context, c Config) (*Endpoint, error) {
	e := &Endpoint{bind: c.UDP.Addr(), public: c.UDP.Addr()}
	settings := webrtc.SettingEngine{LoggerFactory: Logger(c.Log)}
	if err := e.listen(ctx, c, &settings); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	settings.SetICETimeouts(disconnectedTimeout, failedTimeout, keepaliveInterval)
	settings.SetIncludeLoopbackCandidate(c.UDP.Addr().IsLoopback())
	// mDNS is off. A browser that offers an mDNS name becomes known as a peer-reflexive candidate.
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetReceiveMTU(1500)
	settings.DisableActiveTCP(!c.ActiveTCP)
	if c.Public.IsValid() {
		e.public = c.Public
		rule := webrtc.ICEAddressRewriteRule{External: []string{c.Public.String()}, AsCandidateType: webrtc.ICECandidateTypeHost}
		if err := settings.SetICEAddressRewriteRules(rule); err != nil {
			return nil, errors.Join(fmt.Errorf("public address: %w", err), e.Close())
		}
	}
	engine, err := newMediaEngine()
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	reports := &interceptor.Registry{}
	if err = webrtc.ConfigureRTCPReports(reports); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for _, s := range c.RelayServers {
		e.config.ICETransportPolicy = webrtc.ICETransportPolicyRelay
		e.config.ICEServers = append(e.config.ICEServers, webrtc.ICEServer{URLs: s.URLs, Username: s.Username, Credential: s.Credential})
	}
	e.api = webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(reports))
	if _, err = e.configuration(time.Now()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Endpoint) listen(ctx context.Context, c Config, settings *webrtc.SettingEngine) error {
	logger := settings.LoggerFactory.NewLogger("ice")
	var err error
	if e.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(c.UDP)); err != nil {
		return fmt.Errorf("udp: %w", err)
	}
	// Hundreds of calls share this socket.
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
		// The library closes a silent connection after 10 s. It would stop accepting after a failed Accept, so
		// connlimit retries.
		e.tcp = connlimit.NewListener(open, &connlimit.Limiter{MaxTotal: maxTCP, MaxPerNetwork: maxTCPPerNetwork}, nil)
		tcp := ice.NewTCPMuxDefault(ice.TCPMuxParams{
			Listener: e.tcp, Logger: logger, ReadBufferSize: 32, WriteBufferSize: 64 << 10,
			FirstStunBindTimeout: 10 * time.Second, AliveDurationForConnFromStun: 10 * time.Second,
		})
		e.mux = append(e.mux, tcp)
		settings.SetICETCPMux(tcp)
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	if c.ActiveTCP {
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	settings.SetNetworkTypes(networks)
	return nil
}

const (
	socketBuffer     = 2 << 20
	maxTCP           = 1000 // maximum number of connections
	maxTCPPerNetwork = 50   // maximum for one network, such as an office behind one address
)

// UDP returns the media address.
func (e *Endpoint) UDP() netip.AddrPort {
	a, _ := e.udp.LocalAddr().(*net.UDPAddr)
	return a.AddrPort()
}

// TCP returns the media address for TCP; invalid if disabled.
func (e *Endpoint) TCP() netip.AddrPort {
	if e.tcp == nil {
		return netip.AddrPort{}
	}
	a, _ := e.tcp.Addr().(*net.TCPAddr)
	return a.AddrPort()
}

// Connect creates a peer connection.
func (e *Endpoint) Connect() (*webrtc.PeerConnection, error) {
	how, err := e.configuration(time.Now())
	if err != nil {
		return nil, err
	}
	return e.api.NewPeerConnection(how)
}

// configuration returns the current configuration. Its certificate is valid for at least renewBefore.
func (e *Endpoint) configuration(now time.Time) (webrtc.Configuration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.config.Certificates; len(c) == 0 || c[0].Expires().Sub(now) < renewBefore {
		renewed, err := newCertificate()
		if err != nil {
			return webrtc.Configuration{}, err
		}
		e.config.Certificates = []webrtc.Certificate{renewed} // existing connections keep the old certificate
	}
	return e.config, nil
}

// renewBefore is the remaining validity below which the certificate is replaced. No connection lasts as long.
const renewBefore = 7 * 24 * time.Hour

// CanReach reports whether media may be sent to an address that a remote party names. Loopback and link-local addresses
// are allowed only if the endpoint has such an address too. Private addresses are allowed only if the endpoint has a
// private, loopback or unspecified address.
func (e *Endpoint) CanReach(a netip.Addr) bool {
	a = a.Unmap()
	like := func(is func(netip.Addr) bool) bool { return is(e.bind.Unmap()) || is(e.public.Unmap()) }
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return false
	case a.IsLoopback():
		return like(netip.Addr.IsLoopback)
	case a.IsLinkLocalUnicast():
		return like(netip.Addr.IsLinkLocalUnicast)
	case a.IsPrivate():
		return like(netip.Addr.IsPrivate) || like(netip.Addr.IsLoopback) || e.public.IsUnspecified()
	}
	return true
}

// Close closes the sockets. Peer connections must be closed first.
func (e *Endpoint) Close() error {
	var errs []error
	for _, m := range e.mux {
		errs = append(errs, m.Close())
	}
	if e.udp != nil {
		_ = e.udp.Close() // the mux has closed it
	}
	if e.tcp != nil {
		_ = e.tcp.Close() // the mux has closed it
	}
	return errors.Join(errs...)
}

// Logger returns a factory of pion loggers that write to log; nil drops all messages.
func Logger(log *slog.Logger) logging.LoggerFactory { return &loggerFactory{log: log} }

type loggerFactory struct{ log *slog.Logger }

func (q *loggerFactory) NewLogger(scope string) logging.LeveledLogger {
	if q.log == nil {
		return leveled{slog.New(slog.DiscardHandler)}
	}
	return leveled{q.log.With("part", scope)}
}
