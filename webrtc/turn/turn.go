// Package turn is a TURN server (RFC 8656) for browsers whose networks let
// nothing else through. It leads to the media of web calls and nowhere else: an
// address that it was not told of is refused, whatever range it is in.
package turn

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

// realm is what credentials are of. Clients repeat it and show it to nobody.
const realm = "parley"

// perCall is how many allocations a call may have at a time: a browser makes one
// for each interface and transport, and those of a page that was reloaded remain
// for their lifetime.
const perCall = 8

// lifetime is for how long an allocation is made that asks for nothing else;
// clients refresh it. None outlives its credential.
const lifetime = 10 * time.Minute

// A Config says where the server is, and what it leads to.
type Config struct {
	// Addr is where browsers come in, over UDP; port 0 lets the kernel choose.
	// Relayed packets leave from its address.
	Addr netip.AddrPort
	// Public is the address that browsers reach us at, where it is another.
	Public netip.Addr
	// First and Last bound the ports of relays, one for each allocation.
	First, Last uint16
	// Secret is what credentials are made by, as ice.Servers makes them.
	Secret media.Secret
	// Gateway is where web calls come in, of which browsers know the public address.
	Gateway netip.AddrPort
	// Peers are media addresses of other nodes, which are led to as well.
	Peers []netip.AddrPort
	Log   *slog.Logger

	now func() time.Time // the wall clock
}

// A Server relays.
type Server struct {
	server *turn.Server
	addr   netip.AddrPort
	public netip.Addr
}

// Open binds the socket and serves, until Close.
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
	s := &Server{public: c.told()}
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		s.addr = a.AddrPort()
	}
	peers := newPeers(c)
	relays := &relays{Config: c, peers: peers, calls: map[string]int{}}
	s.server, err = turn.NewServer(turn.ServerConfig{
		Realm: realm, AuthHandler: c.authenticate, QuotaHandler: relays.room, AllocationLifetime: lifetime,
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
		return fmt.Errorf("turn: %d-%d is no range of ports", c.First, c.Last)
	case c.told().IsUnspecified():
		return errors.New("turn: no address that browsers could be told of")
	case !c.Gateway.IsValid():
		return errors.New("turn: it leads nowhere")
	}
	return nil
}

// told is the address that relays are said to have.
func (c Config) told() netip.Addr {
	if c.Public.IsValid() {
		return c.Public.Unmap()
	}
	return c.Addr.Addr().Unmap()
}

// URLs are what browsers are told of the server.
func (s *Server) URLs() []string {
	return []string{"turn:" + netip.AddrPortFrom(s.public, s.addr.Port()).String() + "?transport=udp"}
}

// Allocations is how many there are now.
func (s *Server) Allocations() int { return s.server.AllocationCount() }

// Close ends all relays.
func (s *Server) Close() error { return s.server.Close() }
