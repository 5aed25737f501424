package wsdial

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A quickConn is a TCP connection that reads and writes by raw system calls. They never wait, because the socket is
// non-blocking. Every other system call wakes the scheduler's monitor, which then runs for milliseconds; audio and
// results come and go all the time.
type quickConn struct {
	*net.TCPConn
	raw syscall.RawConn
}

// quicken returns conn with quick reads and writes if it is a TCP connection.
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

// Read implements net.Conn.
func (c quickConn) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	var errno syscall.Errno
	err = c.raw.Read(func(fd uintptr) bool {
		for {
			room := unsafe.Pointer(&b[0]) //nolint:gosec // the kernel writes it during the call only
			got, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(room), uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
			switch e {
			case 0:
				n = int(got)
				return true
			case syscall.EAGAIN:
				return false // wait until something arrives
			case syscall.EINTR:
			default:
				errno = e
				return true
			}
		}
	})
	if err = c.wrap("read", "recvfrom", err, errno); err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

// wrap returns the error of an operation as net.TCPConn does. err is that of the raw connection, errno that of the system call.
func (c quickConn) wrap(op, call string, err error, errno syscall.Errno) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		e.Op = op // instead of raw-read or raw-write
	}
	if err == nil && errno != 0 {
		err = &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
	}
	return err
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
	return n, c.wrap("write", "sendto", err, errno)
}
