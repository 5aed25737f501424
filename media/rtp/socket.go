package rtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// maxPacket is the maximum length of a received packet, in bytes.
const maxPacket = 1500

// udpSocket is a UDP socket outside the Go runtime's network poller: a packet that arrives wakes no goroutine, and
// neither sending nor receiving allocates. SetTarget and Send must be called from one goroutine. It works on Linux
// only.
type udpSocket struct {
	fd    int
	local netip.AddrPort

	dst    [syscall.SizeofSockaddrInet6]byte // set by SetTarget for Send
	dstLen uintptr
}

// listenUDP binds a socket. If the port is 0, the kernel chooses one.
func listenUDP(addr netip.AddrPort) (*udpSocket, error) {
	family := syscall.AF_INET
	if !addr.Addr().Is4() {
		family = syscall.AF_INET6
	}
	fd, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open media socket: %w", err)
	}
	local, err := bind(fd, addr)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("bind media socket to %s: %w", addr, err)
	}
	return &udpSocket{fd: fd, local: local}, nil
}

func bind(fd int, addr netip.AddrPort) (netip.AddrPort, error) {
	// Let the kernel record the arrival times of packets.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1); err != nil {
		return netip.AddrPort{}, err
	}
	var sa syscall.Sockaddr = &syscall.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	if addr.Addr().Is4() {
		sa = &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	if err := syscall.Bind(fd, sa); err != nil {
		return netip.AddrPort{}, err
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := addr.Port()
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		port = uint16(sa.Port) //nolint:gosec // a port
	case *syscall.SockaddrInet6:
		port = uint16(sa.Port) //nolint:gosec // a port
	}
	return netip.AddrPortFrom(addr.Addr(), port), nil
}

// Close closes the socket.
func (s *udpSocket) Close() { _ = syscall.Close(s.fd) }

// checkReachable returns an error if media cannot be sent from a local address to a remote one. The kernel does not
// check this: it delivers packets for some invalid addresses to this host, where another process could receive the
// call.
func checkReachable(local, to netip.Addr) error {
	to = to.Unmap()
	switch {
	case !to.IsValid():
		return errors.New("media address is missing")
	case to.IsUnspecified() || to.IsMulticast() || to == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("media address %s is not unicast", to)
	case local.Is4() != to.Is4() && local != netip.IPv6Unspecified():
		return fmt.Errorf("media address %s cannot be reached from %s", to, local)
	default:
		return nil
	}
}

// Local returns the bound address.
func (s *udpSocket) Local() netip.AddrPort { return s.local }

// FD returns the file descriptor, for polling.
func (s *udpSocket) FD() int { return s.fd }

// SetTarget sets the address to which Send sends. If the address cannot be reached, Send does not send.
func (s *udpSocket) SetTarget(to netip.AddrPort) {
	a := to.Addr()
	s.dst = [syscall.SizeofSockaddrInet6]byte{}
	s.dstLen = 0
	if checkReachable(s.local.Addr(), a) != nil {
		return
	}
	binary.BigEndian.PutUint16(s.dst[2:], to.Port())
	if s.local.Addr().Is4() {
		binary.NativeEndian.PutUint16(s.dst[:], syscall.AF_INET)
		b := a.Unmap().As4()
		copy(s.dst[4:], b[:])
		s.dstLen = syscall.SizeofSockaddrInet4
		return
	}
	binary.NativeEndian.PutUint16(s.dst[:], syscall.AF_INET6)
	b := a.As16()
	copy(s.dst[8:], b[:])
	s.dstLen = syscall.SizeofSockaddrInet6
}

// Send sends one packet. It returns false if the kernel rejects the packet. If the socket's buffer is full, the
// packet is lost.
func (s *udpSocket) Send(b []byte) bool {
	if s.dstLen == 0 {
		return false
	}
	packet, target := unsafe.Pointer(&b[0]), unsafe.Pointer(&s.dst) //nolint:gosec // the kernel reads both during the call only
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(s.fd), uintptr(packet), uintptr(len(b)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, uintptr(target), s.dstLen)
	return errno == 0
}

// packetReceiver holds the buffers for received packets.
type packetReceiver struct {
	data  [maxPacket]byte
	name  [syscall.SizeofSockaddrInet6]byte
	extra [64]byte // control messages of the kernel
	iov   syscall.Iovec
	msg   syscall.Msghdr
}

// Receive reads the next packet, which is valid until the next call. ok is false if no packet waits. The packet is
// nil if it was longer than maxPacket, or after a temporary error.
func (r *packetReceiver) Receive(s *udpSocket) (packet []byte, ok bool) {
	r.iov.Base = &r.data[0]
	r.iov.SetLen(len(r.data))
	r.msg = syscall.Msghdr{Name: &r.name[0], Namelen: uint32(len(r.name)), Iov: &r.iov, Iovlen: 1, Control: &r.extra[0]}
	r.msg.SetControllen(len(r.extra))
	msg := unsafe.Pointer(&r.msg) //nolint:gosec // the kernel writes r during the call only
	got, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, uintptr(s.fd), uintptr(msg), syscall.MSG_DONTWAIT)
	switch {
	case errno == syscall.EINTR || errno == syscall.ECONNREFUSED:
		return nil, true
	case errno != 0:
		return nil, false
	case r.msg.Flags&syscall.MSG_TRUNC != 0:
		return nil, true
	default:
		return r.data[:got], true
	}
}

// From returns the sender of the packet.
func (r *packetReceiver) From() netip.AddrPort {
	port := binary.BigEndian.Uint16(r.name[2:])
	if binary.NativeEndian.Uint16(r.name[:]) == syscall.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(r.name[4:8])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(r.name[8:24])).Unmap(), port)
}

// Age returns how long before now the kernel received the packet. It returns 0 if the time is unknown, or if the wall
// clock was set meanwhile.
func (r *packetReceiver) Age(now time.Time) time.Duration {
	const head = syscall.SizeofCmsghdr
	if int(r.msg.Controllen) < head+16 { //nolint:gosec // at most len(extra)
		return 0
	}
	h := (*syscall.Cmsghdr)(unsafe.Pointer(&r.extra)) //nolint:gosec // the kernel wrote one there
	if h.Level != syscall.SOL_SOCKET || h.Type != syscall.SCM_TIMESTAMPNS {
		return 0
	}
	sec := int64(binary.NativeEndian.Uint64(r.extra[head:]))    //nolint:gosec // a timespec
	nsec := int64(binary.NativeEndian.Uint64(r.extra[head+8:])) //nolint:gosec // likewise
	age := now.Sub(time.Unix(sec, nsec))
	if age < 0 || age > time.Second {
		return 0
	}
	return age
}
