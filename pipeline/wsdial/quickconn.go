package wsdial

import (
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A quickConn is a TCP connection that writes by raw system calls. They never wait, because the socket is non-blocking.
// Every other system call wakes the scheduler's monitor, which then runs for milliseconds; audio is written all the time.
type quickConn struct {
	*net.TCPConn
	raw syscall.RawConn
}

// quicken returns conn with quick writes if it is a TCP connection.
func quicken(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil { // the connection is closed already
		return conn
	}
	return quickConn{tcp, raw}
}

// Write implements net.Conn.
func (c quickConn) Write(b []byte) (n int, err error) {
	var errno syscall.Errno
	err = c.raw.Write(func(fd uintptr) bool {
		for n < len(b) && errno == 0 {
			rest := unsafe.Pointer(&b[n]) //nolint:gosec // the kernel reads it during the call only
			sent, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(rest), uintptr(len(b)-n),
				syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
			switch e {
			case 0:
				n += int(sent)
			case syscall.EAGAIN:
				return false // wait until there is room
			case syscall.EINTR:
			default:
				errno = e
			}
		}
		return true
	})
	if err == nil && errno != 0 {
		err = &net.OpError{Op: "write", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("sendto", errno)}
	}
	return n, err
}
