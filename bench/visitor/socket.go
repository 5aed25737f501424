package visitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// A socket is a visitor's, for one call alone. It knows of each packet of audio
// when it came to this machine, by the kernel's clock, and when it was handed to
// the kernel: whatever lies between the socket and the leg takes no time of the
// call's.
type socket struct {
	udp   *net.UDPConn
	extra [64]byte // control messages, the reader's

	came, left times
}

// listen binds a socket.
func listen(addr netip.AddrPort) (*socket, error) {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, fmt.Errorf("socket of a visitor: %w", err)
	}
	raw, err := udp.SyscallConn()
	if err == nil {
		var fault error
		err = raw.Control(func(fd uintptr) {
			fault = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		})
		err = errors.Join(err, fault)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket of a visitor: %w", err), udp.Close())
	}
	return &socket{udp: udp}, nil
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter. It belongs to one
// goroutine.
func (s *socket) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	n, more, _, from, err := s.udp.ReadMsgUDPAddrPort(b, s.extra[:])
	if err == nil {
		now := time.Now()
		s.came.keep(b[:n], now.Add(-age(s.extra[:more], now)))
	}
	return n, from, err
}

// WriteToAddrPort implements ice.AddrPortReaderWriter.
func (s *socket) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	s.left.keep(b, time.Now())
	return s.udp.WriteToUDPAddrPort(b, to)
}

// ReadFrom implements net.PacketConn, as all below.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.ReadFromAddrPort(b)
	return n, net.UDPAddrFromAddrPort(from), err
}

// WriteTo is of net.PacketConn.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("%s is no address of UDP", to)
	}
	return s.WriteToAddrPort(b, a.AddrPort())
}

// Close is of net.PacketConn.
func (s *socket) Close() error { return s.udp.Close() }

// LocalAddr is of net.PacketConn.
func (s *socket) LocalAddr() net.Addr { return s.udp.LocalAddr() }

// SetDeadline is of net.PacketConn.
func (s *socket) SetDeadline(t time.Time) error { return s.udp.SetDeadline(t) }

// SetReadDeadline is of net.PacketConn.
func (s *socket) SetReadDeadline(t time.Time) error { return s.udp.SetReadDeadline(t) }

// SetWriteDeadline is of net.PacketConn.
func (s *socket) SetWriteDeadline(t time.Time) error { return s.udp.SetWriteDeadline(t) }

// age is how long before now the kernel took a packet in, by the control messages
// that came with it. It is 0 where they do not say, or where the wall clock was
// set meanwhile.
func age(control []byte, now time.Time) time.Duration {
	all, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range all {
		if m.Header.Level != syscall.SOL_SOCKET || m.Header.Type != syscall.SCM_TIMESTAMPNS || len(m.Data) < 16 {
			continue
		}
		sec := int64(binary.NativeEndian.Uint64(m.Data))      //nolint:gosec // a timespec
		nsec := int64(binary.NativeEndian.Uint64(m.Data[8:])) //nolint:gosec // likewise
		if d := now.Sub(time.Unix(sec, nsec)); d > 0 && d < time.Second {
			return d
		}
	}
	return 0
}

// kept is how many packets of one direction are remembered: ten seconds, and a
// power of two.
const kept = 512

// times are when packets of audio passed, by their source and number, which are
// sent in the clear (RFC 3711 section 3.1).
type times struct {
	mu   sync.Mutex
	last [kept]passed
}

type passed struct {
	source uint32
	seq    uint16
	at     time.Time
}

// keep keeps when a packet passed, if it is one of audio.
func (t *times) keep(b []byte, at time.Time) {
	const version, head = 2, 12
	if len(b) < head || b[0]>>6 != version || b[1] >= 192 && b[1] <= 223 { // RFC 5761 section 4
		return
	}
	p := passed{binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint16(b[2:]), at}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[p.seq%kept] = p
}

// of is when the packet of a source and number passed.
func (t *times) of(source uint32, seq uint16) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.last[seq%kept]
	return p.at, p.source == source && p.seq == seq && !p.at.IsZero()
}
