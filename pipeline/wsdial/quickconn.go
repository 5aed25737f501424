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
	switch {
	case err != nil:
		if op, ok := errors.AsType[*net.OpError](err); ok {
			op.Op = "read" // instead of raw-read
		}
		return n, err
	case errno != 0:
		return n, c.opError("read", "recvfrom", errno)
	case n == 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

func (c quickConn) opError(op, call string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
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
		err = c.opError("write", "sendto", errno)
	}
	return n, err
}
