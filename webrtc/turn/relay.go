package turn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/pion/turn/v5"
)

// Errors of allocations. Clients are told 508 (insufficient capacity).
var (
	errFull   = errors.New("too many allocations")
	errFamily = errors.New("no such address family here")
	errTCP    = errors.New("nothing is relayed over TCP") // RFC 6062
	errPort   = errors.New("no such port")
)

// tries is how many ports an allocation looks at.
const tries = 64

// relays are the sockets of allocations. It implements
// turn.RelayAddressGenerator.
type relays struct {
	Config
	peers *peers

	mu    sync.Mutex
	all   int
	calls map[string]int // allocations by call
}

// Validate implements turn.RelayAddressGenerator.
func (r *relays) Validate() error { return nil }

// room says whether a user may have one more allocation.
func (r *relays) room(user, _ string, _ net.Addr) bool {
	call, _, _ := parse(user)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fits(call)
}

// fits is asked under the lock.
func (r *relays) fits(call string) bool {
	return r.all <= int(r.Last-r.First) && r.calls[call] < perCall
}

func (r *relays) take(call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fits(call) {
		return false
	}
	r.all++
	r.calls[call]++
	return true
}

func (r *relays) give(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	if r.calls[call]--; r.calls[call] == 0 {
		delete(r.calls, call)
	}
}

// AllocatePacketConn implements turn.RelayAddressGenerator.
func (r *relays) AllocatePacketConn(c turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	if strings.HasSuffix(c.Network, "6") != r.told().Is6() {
		return nil, nil, errFamily
	}
	call, until, _ := parse(c.UserID) // without a user the library looks for an even port, and lets go of it
	if !r.take(call) {
		return nil, nil, errFull
	}
	udp, err := r.listen(c.RequestedPort)
	if err != nil {
		r.give(call)
		return nil, nil, err
	}
	if !until.IsZero() {
		_ = udp.SetReadDeadline(until) // the library ends an allocation that cannot be read
	}
	port := udp.LocalAddr().(*net.UDPAddr).AddrPort().Port() //nolint:forcetypeassert // a UDP socket's
	s := &socket{UDPConn: udp, peers: r.peers, closed: sync.OnceFunc(func() { r.give(call) })}
	return s, net.UDPAddrFromAddrPort(netip.AddrPortFrom(r.told(), port)), nil
}

// listen binds a port of the range, the one that is wanted or any. They are
// looked at in an order that nobody can foresee (RFC 8656, 7.2).
func (r *relays) listen(wanted int) (*net.UDPConn, error) {
	if wanted != 0 && (wanted < int(r.First) || wanted > int(r.Last)) {
		return nil, errPort
	}
	size := int(r.Last-r.First) + 1
	first := rand.IntN(size) //nolint:gosec // ports are no secret
	var errs error
	for n := range min(tries, size) {
		port := int(r.First) + (first+n)%size
		if wanted != 0 {
			port = wanted
		}
		var lc net.ListenConfig
		conn, err := lc.ListenPacket(context.Background(), "udp", net.JoinHostPort(r.Addr.Addr().String(), strconv.Itoa(port)))
		if udp, ok := conn.(*net.UDPConn); err == nil && ok {
			return udp, nil
		}
		if errs = err; wanted != 0 {
			break
		}
	}
	return nil, fmt.Errorf("no port is free: %w", errs)
}

// AllocateListener implements turn.RelayAddressGenerator.
func (r *relays) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errTCP
}

// AllocateConn implements turn.RelayAddressGenerator.
func (r *relays) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errTCP }

// A socket is that of one allocation. It holds peers to their ports, too, which
// permissions do not.
type socket struct {
	*net.UDPConn
	peers  *peers
	closed func()
}

// ReadFrom implements net.PacketConn. What comes from elsewhere is dropped.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.ReadFromUDPAddrPort(b)
		if err != nil {
			return n, nil, err
		}
		if told, ok := s.peers.from(from); ok {
			return n, net.UDPAddrFromAddrPort(told), nil
		}
	}
}

// WriteTo implements net.PacketConn.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, errPeer
	}
	really, ok := s.peers.to(a.AddrPort())
	if !ok {
		return 0, errPeer
	}
	return s.WriteToUDPAddrPort(b, really)
}

// Close implements net.PacketConn.
func (s *socket) Close() error {
	s.closed()
	return s.UDPConn.Close()
}
