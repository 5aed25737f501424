package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"syscall"
	"time"
	"unsafe"
)

const (
	// packetLen is the length of an RTP packet of 20 ms of G.711.
	packetLen     = 172
	streamTick    = 5 * time.Millisecond
	ticksPerFrame = 4 // clock ticks per frame
)

// udpStreams are UDP streams, each with its own loopback socket.
type udpStreams struct {
	fds   []int
	ports []int
	epoll int
}

// openStreams binds n sockets on 127.0.0.1.
func openStreams(n int) (*udpStreams, error) {
	s := &udpStreams{}
	var err error
	if s.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	for i := range n {
		if err := s.bind(i); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *udpStreams) bind(i int) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	s.fds = append(s.fds, fd)
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("kernel time: %w", err)
	}
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("socket name: %w", err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return fmt.Errorf("socket name: %T", name)
	}
	s.ports = append(s.ports, inet.Port)
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)} //nolint:gosec // a few thousand
	if err := syscall.EpollCtl(s.epoll, syscall.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

func (s *udpStreams) Ports() []int { return s.ports }

func (s *udpStreams) Close() {
	for _, fd := range s.fds {
		_ = syscall.Close(fd)
	}
	_ = syscall.Close(s.epoll)
}

// A streamReport counts the packets of a measurement.
type streamReport struct {
	Sent, Received int
	Gaps           []time.Duration // gaps between two packets of one stream, sorted
	Late           []time.Duration // lateness of each clock tick
}

// Quantile returns the p-quantile of the gaps.
func (r streamReport) Quantile(p float64) time.Duration {
	if len(r.Gaps) == 0 {
		return 0
	}
	return r.Gaps[min(len(r.Gaps)-1, int(math.Ceil(p*float64(len(r.Gaps))))-1)]
}

// Run sends a frame of each stream to its port every 20 ms and receives packets, all on one
// thread, until stop is closed. The report covers only the time in which measuring returns true.
func (s *udpStreams) Run(ports []int, stop <-chan struct{}, measuring func(now time.Time) bool) streamReport {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := streamRun{udpStreams: s, last: make([]int64, len(s.fds)), dst: make([][16]byte, len(ports))}
	for i, port := range ports {
		binary.NativeEndian.PutUint16(r.dst[i][:], syscall.AF_INET)
		binary.BigEndian.PutUint16(r.dst[i][2:], uint16(port)) //nolint:gosec // a port
		copy(r.dst[i][4:], []byte{127, 0, 0, 1})
	}
	due := time.Now()
	for n := 0; ; n++ {
		select {
		case <-stop:
			slices.Sort(r.report.Gaps)
			return r.report
		default:
		}
		if d := time.Until(due); d > 0 {
			ts := syscall.NsecToTimespec(int64(d))
			_ = syscall.Nanosleep(&ts, nil) // after an early wake-up, the frame leaves less than a tick early
		}
		counting := measuring(due)
		if counting {
			r.report.Late = append(r.report.Late, time.Since(due))
		}
		r.receive(counting)
		for i := n % ticksPerFrame; i < len(r.dst); i += ticksPerFrame {
			r.send(i, uint32(n/ticksPerFrame), counting)
		}
		due = due.Add(streamTick)
	}
}

type streamRun struct {
	*udpStreams
	dst    [][16]byte
	last   []int64 // arrival of the last packet of each stream
	report streamReport

	events  [256]syscall.EpollEvent
	in      [1500]byte
	control [64]byte
	out     [packetLen]byte
}

func (r *streamRun) send(i int, n uint32, counting bool) {
	b := r.out[:]
	b[0], b[1] = 0x80, 0
	binary.BigEndian.PutUint16(b[2:], uint16(n)) //nolint:gosec // wraps as RTP does
	binary.BigEndian.PutUint32(b[4:], n*160)
	binary.BigEndian.PutUint32(b[8:], uint32(i)) //nolint:gosec // the number of a stream
	for k := 12; k < len(b); k++ {
		b[k] = 0xff ^ byte((n+uint32(k))&7) // quiet noise
	}
	_, _, errno := syscall.RawSyscall6(
		syscall.SYS_SENDTO,
		uintptr(r.fds[i]),
		uintptr(unsafe.Pointer(&b[0])), //nolint:gosec // read during the call only
		uintptr(len(b)),
		syscall.MSG_DONTWAIT,
		uintptr(unsafe.Pointer(&r.dst[i])), //nolint:gosec // likewise
		16,
	)
	if errno == 0 && counting {
		r.report.Sent++
	}
}

func (r *streamRun) receive(counting bool) {
	for {
		n, err := syscall.EpollWait(r.epoll, r.events[:], 0)
		if err != nil || n == 0 {
			return
		}
		for _, e := range r.events[:n] {
			for r.read(int(e.Fd), counting) {
			}
		}
		if n < len(r.events) {
			return
		}
	}
}

func (r *streamRun) read(i int, counting bool) bool {
	iov := syscall.Iovec{Base: &r.in[0], Len: uint64(len(r.in))}
	msg := syscall.Msghdr{Iov: &iov, Iovlen: 1, Control: &r.control[0], Controllen: uint64(len(r.control))}
	_, _, errno := syscall.RawSyscall(
		syscall.SYS_RECVMSG,
		uintptr(r.fds[i]),
		uintptr(unsafe.Pointer(&msg)), //nolint:gosec // written during the call only
		syscall.MSG_DONTWAIT,
	)
	if errno != 0 {
		return false
	}
	const head = syscall.SizeofCmsghdr
	at := int64(binary.NativeEndian.Uint64(r.control[head:]))*int64(time.Second) + //nolint:gosec // a timespec
		int64(binary.NativeEndian.Uint64(r.control[head+8:])) //nolint:gosec // likewise
	if counting {
		r.report.Received++
		if r.last[i] != 0 {
			r.report.Gaps = append(r.report.Gaps, time.Duration(at-r.last[i]))
		}
	}
	r.last[i] = at
	return true
}
