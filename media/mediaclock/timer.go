package mediaclock

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A timer waits for the ticks of a clock.
type timer interface {
	// wait returns false at due, and true if a watched descriptor is readable before. It may return earlier if ctx ends.
	wait(ctx context.Context, due time.Time) (readable bool)
	// watch replaces the watched descriptors. It returns false if the timer cannot watch them.
	watch(fds []int) bool
	stop()
}

func (c *Clock) newTimer() timer {
	if c.Precise {
		if t, err := newKernelTimer(); err == nil {
			return t
		}
	}
	t := time.NewTimer(Tick)
	return runtimeTimer{t}
}

// A runtimeTimer is a timer of the Go runtime.
type runtimeTimer struct{ *time.Timer }

func (t runtimeTimer) wait(ctx context.Context, due time.Time) bool {
	t.Reset(time.Until(due))
	select {
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// watch returns false even without descriptors, because a hook may have to be called in each tick.
func (t runtimeTimer) watch([]int) bool { return false }

func (t runtimeTimer) stop() { t.Stop() }

// A kernelTimer is a Linux timer (timerfd_create(2)) in an epoll set with the watched descriptors. The goroutine waits for
// the set in the runtime's poller. A sleep in a system call would keep the scheduler's monitor awake, which costs 2% of
// a core.
type kernelTimer struct {
	fd      int      // the timer
	set     *os.File // the epoll set
	epoll   int      // descriptor of set
	conn    syscall.RawConn
	watched []int
	read    func(epoll uintptr) bool // t.readEvents
	events  [4]syscall.EpollEvent
	ready   int // number of events that were read
}

func newKernelTimer() (*kernelTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	_ = unix.SetNonblock(epoll, true) // os.NewFile uses the runtime's poller only for such descriptors
	t := &kernelTimer{fd: fd, set: os.NewFile(uintptr(epoll), "media clock"), epoll: epoll}
	t.read = t.readEvents
	if err = t.add(fd); err == nil {
		t.conn, err = t.set.SyscallConn()
	}
	if err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

func (t *kernelTimer) add(fd int) error {
	return unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}) //nolint:gosec // a descriptor
}

func (t *kernelTimer) watch(fds []int) bool {
	if slices.Equal(fds, t.watched) {
		return true
	}
	for _, fd := range t.watched {
		_ = unix.EpollCtl(t.epoll, unix.EPOLL_CTL_DEL, fd, nil) // fails if fd was closed, which has removed it
	}
	t.watched = t.watched[:0]
	for _, fd := range fds {
		if t.add(fd) != nil {
			return false
		}
		t.watched = append(t.watched, fd)
	}
	return true
}

// readEvents returns false if nothing in the set is readable. It is a raw system call, because every other one wakes
// the scheduler's monitor, which then runs for milliseconds.
func (t *kernelTimer) readEvents(epoll uintptr) bool {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, epoll,
		uintptr(unsafe.Pointer(&t.events)), uintptr(len(t.events)), 0, 0, 0) //nolint:gosec // the kernel writes the events during the call only
	if t.ready = int(n); errno != 0 {
		t.ready = 0
	}
	return t.ready > 0
}

func (t *kernelTimer) wait(ctx context.Context, due time.Time) bool {
	left := time.Until(due)
	if left <= 0 {
		return false
	}
	// Setting the timer also makes it unreadable if it has expired.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
	err := unix.TimerfdSettime(t.fd, 0, &spec, nil)
	for err == nil && time.Now().Before(due) {
		if err = t.conn.Read(t.read); err == nil && slices.ContainsFunc(t.events[:t.ready], t.isWatched) {
			return true
		}
	}
	if err != nil { // unexpected; a timer of the runtime keeps the clock running
		select {
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
	return false
}

func (t *kernelTimer) isWatched(e syscall.EpollEvent) bool { return int(e.Fd) != t.fd }

func (t *kernelTimer) stop() {
	_ = t.set.Close()
	_ = unix.Close(t.fd)
}
