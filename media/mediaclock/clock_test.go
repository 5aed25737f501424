package mediaclock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
)

type tickFunc func(due time.Time)

func (f tickFunc) Tick(due time.Time) { f(due) }

// run runs the clock until stop is called.
func run(ctx context.Context, c *Clock) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func TestDueTimesAreAbsolute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		start := time.Now()
		var dues []time.Duration
		c.Add(tickFunc(func(due time.Time) {
			dues = append(dues, due.Sub(start))
			if now := time.Since(start); len(dues) > 20 && now != due.Sub(start) {
				t.Errorf("tick due at %v ran at %v", due.Sub(start), now)
			}
		}))
		stop := run(t.Context(), &c)
		<-time.After(time.Second)
		stop()
		if len(dues) != 50 {
			t.Fatalf("got %d ticks in a second, want 50", len(dues))
		}
		for i := range dues[1:] {
			if step := dues[i+1] - dues[i]; step != media.FrameTime {
				t.Errorf("step %d is %v", i, step)
			}
		}
		if s := c.Stats(); s.Ticks < 199 || s.Late != 0 || s.Skipped != 0 || s.Worst != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestPhasesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		start := time.Now()
		phase := map[int]time.Duration{}
		for i := range 8 {
			c.Add(tickFunc(func(due time.Time) { phase[i] = due.Sub(start) % media.FrameTime }))
		}
		hooks := 0
		c.Hook(tickFunc(func(time.Time) { hooks++ }))
		stop := run(t.Context(), &c)
		<-time.After(101 * time.Millisecond)
		stop()
		count := map[time.Duration]int{}
		for _, p := range phase {
			count[p]++
		}
		if len(count) != phases || count[0] != 2 {
			t.Errorf("streams per phase: %v", count)
		}
		if hooks != 20 {
			t.Errorf("got %d hook calls in 101 ms, want 20", hooks)
		}
	})
}

func TestScatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Clock{Scatter: true}
		start := time.Now()
		phase := map[time.Duration]int{}
		for range 400 {
			var once sync.Once
			c.Add(tickFunc(func(due time.Time) { once.Do(func() { phase[due.Sub(start)]++ }) }))
		}
		stop := run(t.Context(), &c)
		<-time.After(101 * time.Millisecond)
		stop()
		first := time.Hour
		for at, n := range phase {
			first = min(first, at)
			if n < 50 {
				t.Errorf("%d of 400 streams at %v", n, at)
			}
		}
		if len(phase) != phases || first < Tick || first >= 2*Tick {
			t.Errorf("streams at %v", phase)
		}
	})
}

// TestCatchUp lets a stream stall the clock. It checks that ticks missed in a short stall run late, that ticks missed
// in a long one are skipped, and that the later deadlines do not move.
func TestCatchUp(t *testing.T) {
	for _, row := range []struct {
		stall   time.Duration
		frames  int
		skipped bool
	}{
		{30 * time.Millisecond, 50, false},
		{300 * time.Millisecond, 35, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var c Clock
			start := time.Now()
			n := 0
			c.Add(tickFunc(func(due time.Time) {
				if n++; n == 5 {
					<-time.After(row.stall)
				}
				if due.Sub(start)%Tick != 0 {
					t.Errorf("stall %v: due %v is off the grid", row.stall, due.Sub(start))
				}
			}))
			stop := run(t.Context(), &c)
			<-time.After(time.Second)
			stop()
			if s := c.Stats(); n < row.frames-1 || n > row.frames+1 || (s.Skipped > 0) != row.skipped || s.Late == 0 || s.Worst < row.stall-Tick {
				t.Errorf("stall %v: %d frames, %+v", row.stall, n, s)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	var c Clock
	stop := run(t.Context(), &c)
	defer stop()
	for round := range 20 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				called, gone := make(chan struct{}, 1), false
				remove := c.Add(tickFunc(func(time.Time) {
					if gone { // the race detector would catch this too
						t.Error("called after remove")
					}
					select {
					case called <- struct{}{}:
					default:
					}
				}))
				if round%2 == 0 { // remove half of the streams after a call, the others at once
					<-called
				}
				remove()
				gone = true
				remove()
			})
		}
		wg.Wait()
	}
	if c.loaded != [phases]int{} {
		t.Errorf("streams left: %v", c.loaded)
	}
}

func TestRemoveWaitsForCall(t *testing.T) {
	var c Clock
	stop := run(t.Context(), &c)
	defer stop()
	inside, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	remove := c.Add(tickFunc(func(time.Time) {
		once.Do(func() { close(inside); <-proceed })
	}))
	<-inside
	removed := make(chan struct{})
	go func() { remove(); close(removed) }()
	select {
	case <-removed:
		t.Fatal("remove returned while the stream was being called")
	case <-time.After(20 * time.Millisecond):
	}
	close(proceed)
	<-removed
}

func TestNoAllocations(t *testing.T) {
	var c Clock
	for range 10 {
		c.Add(tickFunc(func(time.Time) {}))
	}
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { c.tick(0, now) }); n != 0 {
		t.Errorf("a tick allocates %v times", n)
	}
}

// TestRest checks that the clock does not run without streams, even with a hook. A stream that is added later is called
// within one frame.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		var hooks, calls atomic.Int64
		defer c.Hook(tickFunc(func(time.Time) { hooks.Add(1) }))()
		stop := run(t.Context(), &c)
		defer stop()
		for range 3 {
			ticks := c.Stats().Ticks
			<-time.After(time.Hour)
			if c.Stats().Ticks > ticks+1 || hooks.Load() > ticks+1 {
				t.Fatalf("%d ticks and %d hooks without a stream", c.Stats().Ticks-ticks, hooks.Load())
			}
			added := time.Now()
			calls.Store(0)
			remove := c.Add(tickFunc(func(due time.Time) {
				if calls.Add(1) == 1 && due.Sub(added) > media.FrameTime {
					t.Errorf("the first call is due after %v", due.Sub(added))
				}
			}))
			<-time.After(time.Second + Tick/2) // between two ticks
			if n := calls.Load(); n != 50 {
				t.Errorf("%d calls in a second", n)
			}
			remove()
		}
		if s := c.Stats(); s.Late != 0 || s.Skipped != 0 || hooks.Load() < 600 {
			t.Errorf("%+v, %d hooks", s, hooks.Load())
		}
	})
}

// TestKernelTimer checks that the timer never returns early, and that it does not allocate.
func TestKernelTimer(t *testing.T) {
	k, err := newKernelTimer()
	if err != nil {
		t.Fatal(err)
	}
	defer k.stop()
	for _, after := range []time.Duration{Tick, time.Millisecond, 100 * time.Microsecond, time.Nanosecond, 0, -time.Hour} {
		due := time.Now().Add(after)
		if k.wait(t.Context(), due); time.Now().Before(due) {
			t.Errorf("%v: returned %v early", after, time.Until(due))
		}
	}
	if n := testing.AllocsPerRun(20, func() { k.wait(t.Context(), time.Now().Add(100*time.Microsecond)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPreciseStops checks that a clock with a kernel timer ticks, and stops when its context ends.
func TestPreciseStops(t *testing.T) {
	c := Clock{Precise: true}
	ticked := make(chan struct{}, 100)
	defer c.Add(tickFunc(func(time.Time) {
		select {
		case ticked <- struct{}{}:
		default:
		}
	}))()
	stop := run(t.Context(), &c)
	<-ticked
	<-ticked
	stop()
}
