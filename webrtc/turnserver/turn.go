// Package turnserver is a TURN server (RFC 8656) for browsers whose networks block everything else. It relays only to
// the media addresses of web calls and refuses all other addresses.
package turnserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/pion/turn/v5"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
)

// realm is the realm of credentials. Clients do not display it.
const realm = "parley"

// perCall is the maximum number of concurrent allocations of a call. A browser makes one for each network interface and
// transport. Allocations of a page that was reloaded last until they expire.
const perCall = 8

// lifetime is the default lifetime of an allocation. Clients may extend it until their credential expires.
const lifetime = 10 * time.Minute

// A Config sets the addresses of the server and its peers.
type Config struct {
	// Addr is the UDP address of the server. Relay sockets use the same IP address. If the port is 0, the kernel
	// chooses one.
	Addr netip.AddrPort
	// Public is the address at which browsers reach the server; invalid means that of Addr.
	Public netip.Addr
	// First and Last are the port range of relays, one port per allocation.
	First, Last uint16
	// Secret is the secret of the credentials, as in ice.Servers.
	Secret media.Secret
	// Gateway is the media address of web calls. Browsers use its port with the public IP address.
	Gateway netip.AddrPort
	// Peers are media addresses of other nodes, to which packets may be relayed too.
	Peers []netip.AddrPort
	Log   *slog.Logger

	now func() time.Time // wall clock
}

// A Server is a running TURN server.
type Server struct {
	server *turn.Server
	addr   netip.AddrPort
	public netip.Addr
}

// Open binds the socket and serves until Close.
func Open(ctx context.Context, c Config) (*Server, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.now == nil {
		c.now = time.Now
	}
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", c.Addr.String())
	if err != nil {
		return nil, fmt.Errorf("turn: %w", err)
	}
	s := &Server{public: c.publicAddr()}
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		s.addr = a.AddrPort()
	}
	peers := newPeers(c)
	relays := &relays{Config: c, peers: peers, calls: map[string]int{}}
	s.server, err = turn.NewServer(turn.ServerConfig{
		Realm: realm, AuthHandler: c.authenticate, QuotaHandler: relays.admit, AllocationLifetime: lifetime,
		LoggerFactory: ice.Logger(c.Log),
		PacketConnConfigs: []turn.PacketConnConfig{{
			PacketConn: conn, RelayAddressGenerator: relays, PermissionHandler: peers.permit,
		}},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("turn: %w", err), conn.Close())
	}
	return s, nil
}

func (c Config) check() error {
	switch {
	case c.Secret == "":
		return errors.New("turn: no secret")
	case c.First == 0 || c.Last < c.First:
		return fmt.Errorf("turn: relay ports %d-%d are not a valid range", c.First, c.Last)
	case c.publicAddr().IsUnspecified():
		return errors.New("turn: a public address is required")
	case !c.Gateway.IsValid():
		return errors.New("turn: no gateway address")
	}
	return nil
}

// publicAddr returns the IP address of relays as browsers see it.
func (c Config) publicAddr() netip.Addr {
	if c.Public.IsValid() {
		return c.Public.Unmap()
	}
	return c.Addr.Addr().Unmap()
}

// URLs returns the TURN URLs for browsers.
func (s *Server) URLs() []string {
	return []string{"turn:" + netip.AddrPortFrom(s.public, s.addr.Port()).String() + "?transport=udp"}
}

// Allocations returns the number of current allocations.
func (s *Server) Allocations() int { return s.server.AllocationCount() }

// Close ends all relays.
func (s *Server) Close() error { return s.server.Close() }
