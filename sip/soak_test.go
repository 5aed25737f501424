package sip

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
	"github.com/parley-voice/parley/sip/timer"
)

// TestSoak holds 100 calls for ten minutes, audio both ways, each session
// refreshed every 45 s; a fifth of them are hung up and dialled again every 20
// s. None may be dropped, and memory, goroutines and ports must not grow. It
// runs where PARLEYTEST_SOAK is set: to how long, or to anything for ten
// minutes.
func TestSoak(t *testing.T) {
	how := os.Getenv("PARLEYTEST_SOAK")
	if how == "" {
		t.Skip("set PARLEYTEST_SOAK")
	}
	lasts, err := time.ParseDuration(how)
	if err != nil {
		lasts = 10 * time.Minute
	}
	const calls, short = 100, 20
	l := newLine(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{
			Status: 200, Session: timer.Interval{Length: 90 * time.Second, Refresher: timer.UAC},
			Talk: func(ctx context.Context, leg media.Leg) {
				leg.Play(&sine{hz: 440})
				go func() { _ = drain(leg) }() // ends with the leg
				<-ctx.Done()
			},
		}
	})
	end := time.Now().Add(lasts)
	base := runtime.NumGoroutine()
	var placed, dropped, frames atomic.Int64
	var all sync.WaitGroup
	for n := range calls {
		all.Go(func() {
			for time.Now().Before(end) {
				until := end
				if n < short {
					until = time.Now().Add(min(20*time.Second, time.Until(end)))
				}
				heard, cause := soak(t, l, until)
				frames.Add(heard)
				placed.Add(1)
				if cause != media.LocalHangup {
					dropped.Add(1)
					t.Errorf("a call was dropped: %s", cause)
					return
				}
			}
		})
	}
	var early, late uint64
	for quarter := 1; quarter <= 4; quarter++ {
		<-time.After(time.Until(end) / time.Duration(5-quarter))
		heap := live()
		t.Logf("%v: heap %d KiB, %d goroutines, %d ports, %d calls so far", time.Until(end).Round(time.Second), heap>>10, runtime.NumGoroutine(), l.ports.InUse(), placed.Load())
		if quarter == 1 {
			early = heap
		}
		if quarter == 3 { // all calls are still up
			late = heap
		}
	}
	all.Wait()
	if late > early+early/10 {
		t.Errorf("memory grew from %d to %d KiB while the calls were up", early>>10, late>>10)
	}
	if n := dropped.Load(); n > 0 {
		t.Errorf("%d calls were dropped", n)
	}
	if want := int64(calls) * int64(lasts/media.FrameTime) * 98 / 100; frames.Load() < want {
		t.Errorf("%d frames were heard, want %d", frames.Load(), want)
	}
	for limit := soon(t); l.carrier.Calls() > 0 || l.ports.InUse() > 0; {
		select {
		case <-limit.Done():
			t.Fatalf("%d calls and %d ports left", l.carrier.Calls(), l.ports.InUse())
		case <-time.After(50 * time.Millisecond):
		}
	}
	for limit := time.After(40 * time.Second); runtime.NumGoroutine() > base+10; { // transactions end in 32 s
		select {
		case <-limit:
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), base)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Logf("%d calls, %d frames heard, heap %d KiB at first, %d KiB at last; %d goroutines before, %d after",
		placed.Load(), frames.Load(), early>>10, late>>10, base, runtime.NumGoroutine())
}

// soak holds one call, and returns how it ended and the frames that were heard.
func soak(t *testing.T, l *line, until time.Time) (heard int64, cause media.Cause) {
	t.Helper()
	up, err := l.ua.Dial(t.Context(), l.target(), nil)
	if err != nil {
		t.Error(err)
		return 0, media.Failure
	}
	up.Play(&sine{hz: 700})
	f := make(media.Frame, media.FrameLen(up.Rate()))
	for time.Now().Before(until) {
		if err := up.ReadFrame(f); err != nil {
			return heard, up.Cause()
		}
		heard++
	}
	_ = up.Hangup(media.LocalHangup)
	return heard, up.Cause()
}

// live is the memory in use after everything unused is gone.
func live() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold survives the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
