package mediaclock

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// fakeTimer is a timer that can watch one descriptor. It is readable at the times in packets.
type fakeTimer struct {
	runtimeTimer
	packets  []time.Time
	watching bool
}

func (f *fakeTimer) watch(fds []int) bool {
	f.watching = len(fds) > 0
	return true
}

func (f *fakeTimer) wait(ctx context.Context, due time.Time) bool {
	if f.watching && len(f.packets) > 0 && f.packets[0].Before(due) {
		f.runtimeTimer.wait(ctx, f.packets[0])
		return true
	}
	return f.runtimeTimer.wait(ctx, due)
}

// fakeSockets reads the packets of a fakeTimer.
type fakeSockets struct {
	timer *fakeTimer
	calls []time.Time
}

func (s *fakeSockets) FD() int { return 1 }

func (s *fakeSockets) Tick(time.Time) {
	now := time.Now()
	s.calls = append(s.calls, now)
	for len(s.timer.packets) > 0 && !s.timer.packets[0].After(now) {
		s.timer.packets = s.timer.packets[1:]
	}
}

type idleSplit struct{}

func (idleSplit) Tick(time.Time) {}
func (idleSplit) IsIdle() bool   { return true }

// TestWaiter lets packets arrive at certain times of a frame, with few and with many streams. It checks when the clock
// reads them, and in which ticks it calls streams.
func TestWaiter(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, row := range []struct {
		name    string
		streams int
		packets []time.Duration
		reads   []time.Duration // within the first two frames, from the first tick on
	}{
		{"one stream without packets", 1, nil, []time.Duration{0, 20 * ms}},
		{"one stream, one packet a frame", 1, []time.Duration{7 * ms, 27 * ms}, []time.Duration{0, 7 * ms, 20 * ms, 27 * ms}},
		{"a flood", 1, []time.Duration{1 * ms, 2 * ms, 3 * ms, 4 * ms, 6 * ms, 9 * ms, 11 * ms, 12 * ms}, []time.Duration{
			0, 1 * ms, 2 * ms, 5 * ms, 7500 * us, 10 * ms, 12500 * us, 15 * ms, 20 * ms,
		}},
		{"streams in two phases", 2, []time.Duration{7 * ms}, []time.Duration{0, 5 * ms, 7 * ms, 20 * ms, 25 * ms}},
		{"many streams", fewStreams/2 + 1, []time.Duration{7 * ms}, []time.Duration{
			0, 2500 * us, 5 * ms, 7500 * us, 10 * ms, 12500 * us, 15 * ms, 17500 * us,
			20 * ms, 22500 * us, 25 * ms, 27500 * us, 30 * ms, 32500 * us, 35 * ms,
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Clock{}
				for range row.streams {
					c.AddSplit(tickFunc(func(time.Time) {}), idleSplit{})
				}
				start := time.Now()
				f := &fakeTimer{runtimeTimer: runtimeTimer{time.NewTimer(0)}}
				for _, at := range row.packets {
					f.packets = append(f.packets, start.Add(at))
				}
				s := &fakeSockets{timer: f}
				c.Hook(s)
				w := waiter{clock: c, timer: f, frame: -1}
				for n, due := 0, start; due.Before(start.Add(40 * ms)); n, due = n+1, due.Add(Tick) {
					if n, due = w.wait(t.Context(), n, due); due.Before(start.Add(40 * ms)) {
						c.tick(n%phases, due)
					}
				}
				var got []time.Duration
				for _, at := range s.calls {
					got = append(got, at.Sub(start))
				}
				if !slices.Equal(got, row.reads) {
					t.Errorf("read packets at %v, want %v", got, row.reads)
				}
			})
		})
	}
}

// TestKernelTimerWatches checks that only a watched descriptor ends a wait, each time that it is readable.
func TestKernelTimerWatches(t *testing.T) {
	k, err := newKernelTimer()
	if err != nil {
		t.Fatal(err)
	}
	defer k.stop()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, err := unix.Dup(int(r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	soon := func() time.Time { return time.Now().Add(2 * time.Millisecond) }
	if due := soon(); !k.watch([]int{fd}) || k.wait(t.Context(), due) || time.Now().Before(due) {
		t.Error("an empty pipe ended the wait")
	}
	if _, err := w.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !k.wait(t.Context(), time.Now().Add(time.Hour)) {
			t.Error("a byte in the pipe did not end the wait")
		}
	}
	if due := soon(); !k.watch(nil) || k.wait(t.Context(), due) || time.Now().Before(due) {
		t.Error("a pipe that is not watched any more ended the wait")
	}
	if k.watch([]int{-1}) {
		t.Error("watches an invalid descriptor")
	}
}
