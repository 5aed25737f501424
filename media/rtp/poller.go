package rtp

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	eventsAtOnce  = 256
	packetsAtOnce = 64 // maximum for one socket in one tick, so that a flood does not delay other sockets
)

// poller reads the sockets that have packets, without waiting. The media clock calls it.
type poller struct {
	epoll  int
	events [eventsAtOnce]syscall.EpollEvent
	in     packetReceiver

	mu    sync.Mutex // held while the list changes
	open  atomic.Pointer[[]*listener]
	spare []int // unused indexes of the list
}

type listener struct {
	mu      sync.Mutex // held while packets are read
	closed  bool
	socket  *udpSocket
	handler packetHandler
}

// packetHandler receives the packets of a socket, on the goroutine of the clock. It must not keep b.
type packetHandler interface {
	receive(b []byte, src netip.AddrPort, at time.Time)
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open epoll: %w", err)
	}
	p := &poller{epoll: fd}
	p.open.Store(&[]*listener{})
	return p, nil
}

func (p *poller) close() { _ = syscall.Close(p.epoll) }

// add makes h receive the packets of a socket until remove returns. The socket must stay open until then.
func (p *poller) add(s *udpSocket, h packetHandler) (remove func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &listener{socket: s, handler: h}
	list := append([]*listener(nil), *p.open.Load()...)
	at := len(list)
	if n := len(p.spare); n > 0 {
		at = p.spare[n-1]
		p.spare = p.spare[:n-1]
		list[at] = l
	} else {
		list = append(list, l)
	}
	p.open.Store(&list)
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(at)} //nolint:gosec // far below 2³¹
	if err := syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, s.FD(), &event); err != nil {
		p.free(at)
		return nil, fmt.Errorf("poll media socket: %w", err)
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		l.closed = true
		_ = syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_DEL, l.socket.FD(), nil)
		l.mu.Unlock()
		p.mu.Lock()
		p.free(at)
		p.mu.Unlock()
	}), nil
}

// FD implements mediaclock.Sockets.
func (p *poller) FD() int { return p.epoll }

// free makes an index of the list unused. The caller holds p.mu.
func (p *poller) free(at int) {
	list := append([]*listener(nil), *p.open.Load()...)
	list[at] = nil
	p.open.Store(&list)
	p.spare = append(p.spare, at)
}

// Tick reads one packet of each socket that has one, and repeats this until none has any. This takes one read per
// packet. Reading until a socket is empty would take a second read, which finds nothing.
func (p *poller) Tick(time.Time) {
	for range packetsAtOnce {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.epoll),
			uintptr(unsafe.Pointer(&p.events)), eventsAtOnce, 0, 0, 0) //nolint:gosec // the kernel writes the events during the call only
		if errno != 0 || n == 0 {
			return
		}
		list, progress := *p.open.Load(), false
		for _, e := range p.events[:n] {
			// The index may belong to another socket since the event. Reading that socket does no harm.
			if int(e.Fd) < len(list) && list[e.Fd] != nil && p.read(list[e.Fd]) {
				progress = true
			}
		}
		if !progress { // the sockets with packets are being removed
			return
		}
	}
}

// read reads a packet, unless remove holds the lock of the listener. It returns false if it read none.
func (p *poller) read(l *listener) bool {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	b, ok := p.in.Receive(l.socket)
	if b != nil {
		now := time.Now()
		l.handler.receive(b, p.in.From(), now.Add(-p.in.Age(now)))
	}
	return ok
}
