// Package udp holds the sockets of media: they stand outside the runtime's
// network poller, so that a packet that comes in wakes nobody, and neither
// sending nor receiving allocates. It runs on Linux only.
package udp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// MaxPacket is the longest packet that is received, in bytes.
const MaxPacket = 1500

// A Socket is a UDP socket. Aim and Send belong to one goroutine.
type Socket struct {
	fd    int
	local netip.AddrPort

	dst    [syscall.SizeofSockaddrInet6]byte // of Send, built by Aim
	dstLen uintptr
}

// Listen binds a socket. Port 0 lets the kernel choose.
func Listen(addr netip.AddrPort) (*Socket, error) {
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
	return &Socket{fd: fd, local: local}, nil
}

func bind(fd int, addr netip.AddrPort) (netip.AddrPort, error) {
	// Arrival is taken where the packet arrives, not where it is read.
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
func (s *Socket) Close() { _ = syscall.Close(s.fd) }

// Reaches says why nothing can be sent from the address local to another, or
// nil where it can. The kernel is not asked: it takes an address of no party
// for one of this host, where a stranger would hear the call.
func Reaches(local, to netip.Addr) error {
	to = to.Unmap()
	switch {
	case !to.IsValid():
		return errors.New("media address is missing")
	case to.IsUnspecified() || to.IsMulticast() || to == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("media address %s is not that of one party", to)
	case local.Is4() != to.Is4() && local != netip.IPv6Unspecified():
		return fmt.Errorf("media address %s is out of reach from %s", to, local)
	default:
		return nil
	}
}

// Local is the address that the socket is bound to.
func (s *Socket) Local() netip.AddrPort { return s.local }

// FD is the file descriptor, to be polled.
func (s *Socket) FD() int { return s.fd }

// Aim sets where Send sends to. What is out of reach is sent nothing.
func (s *Socket) Aim(to netip.AddrPort) {
	a := to.Addr()
	s.dst = [syscall.SizeofSockaddrInet6]byte{}
	s.dstLen = 0
	if Reaches(s.local.Addr(), a) != nil {
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

// Send sends one packet, and is false where the kernel did not take it. The socket's buffer is never full for long, and a
// packet that finds it so is lost, as it would be on the wire.
func (s *Socket) Send(b []byte) bool {
	if s.dstLen == 0 {
		return false
	}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(s.fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, //nolint:gosec // the kernel reads b during the call only
		uintptr(unsafe.Pointer(&s.dst)), s.dstLen) //nolint:gosec // likewise
	return errno == 0
}

// A Reception is the memory that packets are received into.
type Reception struct {
	data  [MaxPacket]byte
	name  [syscall.SizeofSockaddrInet6]byte
	extra [64]byte // control messages
	iov   syscall.Iovec
	msg   syscall.Msghdr
}

// Receive reads the next packet, which stays where it is until the one after
// it. It is false when there is none; for what is longer than MaxPacket, and
// for errors that are over with it, the packet is nil.
func (r *Reception) Receive(s *Socket) (packet []byte, ok bool) {
	r.iov.Base = &r.data[0]
	r.iov.SetLen(len(r.data))
	r.msg = syscall.Msghdr{Name: &r.name[0], Namelen: uint32(len(r.name)), Iov: &r.iov, Iovlen: 1, Control: &r.extra[0]}
	r.msg.SetControllen(len(r.extra))
	got, _, errno := syscall.RawSyscall(syscall.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&r.msg)), syscall.MSG_DONTWAIT) //nolint:gosec // the kernel writes r during the call only
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

// From is who sent the packet.
func (r *Reception) From() netip.AddrPort {
	port := binary.BigEndian.Uint16(r.name[2:])
	if binary.NativeEndian.Uint16(r.name[:]) == syscall.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(r.name[4:8])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(r.name[8:24])).Unmap(), port)
}

// Age is how long before now the kernel took the packet in. It is 0 where the
// kernel does not say, or where its wall clock was set meanwhile.
func (r *Reception) Age(now time.Time) time.Duration {
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
