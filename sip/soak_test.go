package sip

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestSoak holds 100 calls with audio both ways and a refresh every 45 s; a fifth
// is replaced every 20 s. No call may drop, and memory, goroutines and ports must
// not grow. It runs if PARLEYTEST_SOAK is set: to a duration, or any text for ten
// minutes.
func TestSoak(t *testing.T) {
	duration := os.Getenv("PARLEYTEST_SOAK")
	if duration == "" {
		t.Skip("set PARLEYTEST_SOAK")
	}
	lasts, err := time.ParseDuration(duration)
	if err != nil {
		lasts = 10 * time.Minute
	}
	const calls, short = 100, 20
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{
			Status: 200, Session: dialog.SessionExpires{Length: 90 * time.Second, Refresher: dialog.UAC},
			Talk: func(ctx context.Context, leg media.Leg) {
				leg.Play(mediatest.Tone(440))
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
				received, cause := soak(t, l, until)
				frames.Add(received)
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
		heap := heapInUse()
		t.Logf("%v: heap %d KiB, %d goroutines, %d ports, %d calls so far", time.Until(end).Round(time.Second), heap>>10, runtime.NumGoroutine(), l.ports.InUse(), placed.Load())
		if quarter == 1 {
			early = heap
		}
		if quarter == 3 { // no call has dropped
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
		t.Errorf("got %d frames, want %d", frames.Load(), want)
	}
	waitFor(t, func() bool { return l.carrier.Calls() == 0 && l.ports.InUse() == 0 }, func() string {
		return fmt.Sprintf("%d calls and %d ports left", l.carrier.Calls(), l.ports.InUse())
	})
	for limit := time.After(40 * time.Second); runtime.NumGoroutine() > base+10; { // transactions end after 32 s
		select {
		case <-limit:
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), base)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Logf("%d calls, %d frames, heap %d KiB at first, %d KiB at last; %d goroutines before, %d after",
		placed.Load(), frames.Load(), early>>10, late>>10, base, runtime.NumGoroutine())
}

// soak holds one call and returns its end cause and the received frames.
func soak(t *testing.T, l *env, until time.Time) (frames int64, cause media.Cause) {
	t.Helper()
	call, err := l.ua.Dial(t.Context(), l.target(), nil)
	if err != nil {
		t.Error(err)
		return 0, media.Failure
	}
	call.Play(mediatest.Tone(700))
	f := make(media.Frame, media.FrameLen(call.Rate()))
	for time.Now().Before(until) {
		if err := call.ReadFrame(f); err != nil {
			return frames, call.Cause()
		}
		frames++
	}
	_ = call.Hangup(media.LocalHangup)
	return frames, call.Cause()
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // memory pools keep what the first calls used
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
