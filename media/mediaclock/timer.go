package mediaclock

import (
	"context"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A timer waits for the ticks of a clock.
type timer interface {
	// wait returns at due. It may return earlier if ctx ends.
	wait(ctx context.Context, due time.Time)
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

func (t runtimeTimer) wait(ctx context.Context, due time.Time) {
	t.Reset(time.Until(due))
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (t runtimeTimer) stop() { t.Stop() }

// A kernelTimer is a Linux timer (timerfd_create(2)). The goroutine waits in the runtime's poller. A sleep in a system
// call would keep the scheduler's monitor awake, which costs 2 % of a core.
type kernelTimer struct {
	fd    int
	file  *os.File
	conn  syscall.RawConn
	clear func(fd uintptr) bool // t.readExpirations
	buf   [8]byte               // number of expirations
}

func newKernelTimer() (*kernelTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	t := &kernelTimer{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}
	t.clear = t.readExpirations
	if t.conn, err = t.file.SyscallConn(); err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// readExpirations returns false if the timer has not expired. It is a raw system call, because every other one wakes the
// scheduler's monitor, which then runs for milliseconds.
func (t *kernelTimer) readExpirations(fd uintptr) bool {
	buf := unsafe.Pointer(&t.buf) //nolint:gosec // the kernel writes it during the call only
	_, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(buf), uintptr(len(t.buf)))
	return errno != syscall.EAGAIN
}

func (t *kernelTimer) wait(ctx context.Context, due time.Time) {
	for {
		left := time.Until(due)
		if left <= 0 {
			return
		}
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
		err := unix.TimerfdSettime(t.fd, 0, &spec, nil)
		if err == nil {
			err = t.conn.Read(t.clear)
		}
		if err != nil { // unexpected; a timer of the runtime keeps the clock running
			select {
			case <-time.After(left):
			case <-ctx.Done():
				return
			}
		}
	}
}

func (t *kernelTimer) stop() { _ = t.file.Close() }
