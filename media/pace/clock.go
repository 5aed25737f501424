// Package pace is the media clock: one goroutine that calls every paced stream
// of the process when its frame is due, by absolute deadlines. A stream that
// is called late is called at its old due time, so lateness never adds up.
package pace

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	// Tick is the step of the clock.
	Tick = 5 * time.Millisecond
	// phases is how many groups of streams take turns within one frame.
	phases = int(media.FrameTime / Tick)
	// catchUp is how far behind the clock may be and still run every tick
	// that it missed, one after the other. Beyond it the missed ticks are
	// skipped: a burst of old frames would help nobody.
	catchUp = 50 * time.Millisecond
)

// A Stream is something that happens once a frame.
type Stream interface {
	// Tick is called on the clock's goroutine, for each frame at the same
	// phase. Dues are media.FrameTime apart, or a multiple of it where the
	// clock had to skip. It must not block, and must not call the remove
	// function of any stream or hook.
	Tick(due time.Time)
}

// A Clock calls streams. Its zero value is ready to use. All methods may be
// called from any goroutine; those that change what is called never make the
// clock wait.
type Clock struct {
	// Precise has the clock sleep in the kernel instead of by the runtime's
	// timers, which round to the poller's milliseconds: it is about half a
	// millisecond nearer to its time. Not for fake time.
	Precise bool

	mu     sync.Mutex // held by whoever changes the lists
	lists  [phases]atomic.Pointer[[]*entry]
	hooks  atomic.Pointer[[]*entry]
	loaded [phases]int

	ticks, late, skipped, worst atomic.Int64
}

// Stats is how well a clock keeps time.
type Stats struct {
	Ticks   int64         // run since the beginning
	Late    int64         // of them, begun more than a Tick after they were due
	Skipped int64         // not run at all, because the clock was too far behind
	Worst   time.Duration // the greatest lateness seen
}

// Stats returns how well the clock keeps time.
func (c *Clock) Stats() Stats {
	return Stats{c.ticks.Load(), c.late.Load(), c.skipped.Load(), time.Duration(c.worst.Load())}
}

// Run keeps time until ctx ends. It belongs to the caller's goroutine, and
// only one may run at a time.
func (c *Clock) Run(ctx context.Context) {
	due := time.Now().Add(Tick)
	timer := time.NewTimer(Tick)
	defer timer.Stop()
	for n := 0; ; n++ {
		if c.Precise {
			nap(due)
		} else {
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		if ctx.Err() != nil {
			return
		}
		lateness := time.Since(due)
		if lateness > catchUp {
			miss := int(lateness / Tick)
			c.skipped.Add(int64(miss))
			n += miss
			due = due.Add(time.Duration(miss) * Tick)
		}
		c.note(lateness)
		c.tick(n%phases, due)
		due = due.Add(Tick)
		if !c.Precise {
			timer.Reset(time.Until(due))
		}
	}
}

// nap sleeps until due, on the thread itself.
func nap(due time.Time) {
	for {
		d := time.Until(due)
		if d <= 0 {
			return
		}
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil) // a signal ends it early: looked at again
	}
}

func (c *Clock) note(lateness time.Duration) {
	c.ticks.Add(1)
	if lateness > Tick {
		c.late.Add(1)
	}
	if int64(lateness) > c.worst.Load() {
		c.worst.Store(int64(lateness))
	}
}

func (c *Clock) tick(phase int, due time.Time) {
	if hooks := c.hooks.Load(); hooks != nil {
		for _, e := range *hooks {
			e.call(due)
		}
	}
	if list := c.lists[phase].Load(); list != nil {
		for _, e := range *list {
			e.call(due)
		}
	}
}

// Add has s called once a frame from now on, at the phase that has the fewest
// streams. Once remove returned, s is not called any more and is not being
// called; calling it again is harmless.
func (c *Clock) Add(s Stream) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	phase := c.quietest()
	c.loaded[phase]++
	return c.add(&c.lists[phase], s, &c.loaded[phase])
}

// quietest is the phase that has the fewest streams. It needs c.mu.
func (c *Clock) quietest() int {
	phase := 0
	for p, n := range c.loaded {
		if n < c.loaded[phase] {
			phase = p
		}
	}
	return phase
}

// AddSplit is as Add, and has mid called half a frame after each call of s.
func (c *Clock) AddSplit(s, mid Stream) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	phase := c.quietest()
	c.loaded[phase]++
	first := c.add(&c.lists[phase], s, &c.loaded[phase])
	second := c.add(&c.lists[(phase+phases/2)%phases], mid, new(int))
	return func() { first(); second() }
}

// Hook has s called at every Tick, before the streams that are due then.
// Remove is as for Add.
func (c *Clock) Hook(s Stream) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&c.hooks, s, new(int))
}

// add needs c.mu.
func (c *Clock) add(list *atomic.Pointer[[]*entry], s Stream, count *int) (remove func()) {
	e := &entry{stream: s}
	change(list, func(old []*entry) []*entry { return append(old, e) })
	return sync.OnceFunc(func() {
		c.mu.Lock()
		*count--
		change(list, func(old []*entry) []*entry {
			kept := old[:0]
			for _, o := range old {
				if o != e {
					kept = append(kept, o)
				}
			}
			return kept
		})
		c.mu.Unlock()
		e.mu.Lock()
		e.gone = true
		e.mu.Unlock()
	})
}

// change replaces a list by what edit makes of a copy of it: the clock may be
// walking through the old one.
func change(list *atomic.Pointer[[]*entry], edit func([]*entry) []*entry) {
	var fresh []*entry
	if old := list.Load(); old != nil {
		fresh = make([]*entry, len(*old), len(*old)+1)
		copy(fresh, *old)
	}
	fresh = edit(fresh)
	list.Store(&fresh)
}

// An entry is a stream in a list.
type entry struct {
	mu     sync.Mutex // held while the stream is called
	gone   bool
	stream Stream
}

// call calls the stream. Only a remove in progress can hold the lock against
// the clock, and then there is nothing to call.
func (e *entry) call(due time.Time) {
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	if !e.gone {
		e.stream.Tick(due)
	}
}
