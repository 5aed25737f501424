package mediaclock

import (
	"context"
	"os"
	"time"

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
	fd   int
	file *os.File
	buf  [8]byte // number of expirations
}

func newKernelTimer() (*kernelTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &kernelTimer{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
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
			_, err = t.file.Read(t.buf[:])
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
