package webcaller

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

// A socket is the UDP socket of one call. It records when the kernel received each audio packet
// and when each sent packet was passed to the kernel. So the processing above the socket does not
// count as part of a response time.
type socket struct {
	udp   *net.UDPConn
	extra [64]byte // buffer for control messages

	came, left times
}

// listen binds a socket.
func listen(addr netip.AddrPort) (*socket, error) {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, fmt.Errorf("failed to open the media socket: %w", err)
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
		return nil, errors.Join(fmt.Errorf("failed to open the media socket: %w", err), udp.Close())
	}
	return &socket{udp: udp}, nil
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter. Use it from one
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

// ReadFrom implements net.PacketConn, like all methods below.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.ReadFromAddrPort(b)
	return n, net.UDPAddrFromAddrPort(from), err
}

func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("%s is not a UDP address", to)
	}
	return s.WriteToAddrPort(b, a.AddrPort())
}

func (s *socket) Close() error { return s.udp.Close() }

func (s *socket) LocalAddr() net.Addr { return s.udp.LocalAddr() }

func (s *socket) SetDeadline(t time.Time) error { return s.udp.SetDeadline(t) }

func (s *socket) SetReadDeadline(t time.Time) error { return s.udp.SetReadDeadline(t) }

func (s *socket) SetWriteDeadline(t time.Time) error { return s.udp.SetWriteDeadline(t) }

// age returns how long ago the kernel received a packet, by the control messages of the packet.
// It is 0 without a timestamp, or if the wall clock has been set since.
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

// kept is the number of recorded packets per direction: ten seconds of packets, and a power of two.
const kept = 512

// times records when audio packets passed the socket. The key is SSRC and sequence number, which
// SRTP does not encrypt (RFC 3711 section 3.1).
type times struct {
	mu   sync.Mutex
	last [kept]passed
}

type passed struct {
	source uint32
	seq    uint16
	at     time.Time
}

// keep records b if it is an audio packet.
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

// of returns when a packet passed the socket.
func (t *times) of(source uint32, seq uint16) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.last[seq%kept]
	return p.at, p.source == source && p.seq == seq && !p.at.IsZero()
}
