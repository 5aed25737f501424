package turnserver

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

// Errors of allocations. Clients receive 508 (insufficient capacity).
var (
	errFull   = errors.New("too many allocations")
	errFamily = errors.New("address family not supported")
	errTCP    = errors.New("TCP relays are not supported") // RFC 6062
	errPort   = errors.New("port is outside the relay range")
)

// tries is the maximum number of ports tried for one allocation.
const tries = 64

// relays allocates relay sockets. It implements turn.RelayAddressGenerator.
type relays struct {
	Config
	peers *peers

	mu    sync.Mutex
	total int
	calls map[string]int // number of allocations of each call
}

func (r *relays) Validate() error { return nil }

func (r *relays) admit(user, _ string, _ net.Addr) bool {
	call, _, _ := parse(user)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasRoom(call)
}

// hasRoom reports whether the limits allow another allocation for a call. The caller holds r.mu.
func (r *relays) hasRoom(call string) bool {
	return r.total <= int(r.Last-r.First) && r.calls[call] < perCall
}

func (r *relays) acquire(call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.hasRoom(call) {
		return false
	}
	r.total++
	r.calls[call]++
	return true
}

func (r *relays) release(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total--
	if r.calls[call]--; r.calls[call] == 0 {
		delete(r.calls, call)
	}
}

func (r *relays) AllocatePacketConn(c turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	if strings.HasSuffix(c.Network, "6") != r.publicAddr().Is6() {
		return nil, nil, errFamily
	}
	call, until, _ := parse(c.UserID) // the user is empty when the library only probes for an even port
	if !r.acquire(call) {
		return nil, nil, errFull
	}
	udp, err := r.listen(c.RequestedPort)
	if err != nil {
		r.release(call)
		return nil, nil, err
	}
	if !until.IsZero() {
		_ = udp.SetReadDeadline(until) // the library ends an allocation that cannot be read
	}
	port := udp.LocalAddr().(*net.UDPAddr).AddrPort().Port() //nolint:forcetypeassert // a UDP socket's
	s := &socket{UDPConn: udp, peers: r.peers, closed: sync.OnceFunc(func() { r.release(call) })}
	return s, net.UDPAddrFromAddrPort(netip.AddrPortFrom(r.publicAddr(), port)), nil
}

// listen binds the port wanted, which must be in the range. If wanted is 0, it binds a random free port of the range
// (RFC 8656 section 7.2).
func (r *relays) listen(wanted int) (*net.UDPConn, error) {
	if wanted != 0 && (wanted < int(r.First) || wanted > int(r.Last)) {
		return nil, errPort
	}
	size := int(r.Last-r.First) + 1
	first := rand.IntN(size) //nolint:gosec // ports are not secret
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

func (r *relays) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errTCP
}

func (r *relays) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errTCP }

// A socket is the relay socket of one allocation. It also checks the ports of peers, because permissions do not.
type socket struct {
	*net.UDPConn
	peers  *peers
	closed func()
}

// ReadFrom implements net.PacketConn. It drops packets that do not come from peers.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := s.ReadFromUDPAddrPort(b)
		if err != nil {
			return n, nil, err
		}
		if public, ok := s.peers.from(from); ok {
			return n, net.UDPAddrFromAddrPort(public), nil
		}
	}
}

func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, errPeer
	}
	actual, ok := s.peers.to(a.AddrPort())
	if !ok {
		return 0, errPeer
	}
	return s.WriteToUDPAddrPort(b, actual)
}

func (s *socket) Close() error {
	s.closed()
	return s.UDPConn.Close()
}
