// Package mediaclock calls every stream of the process when its frame is due. One goroutine does this, with absolute
// deadlines. A stream that is called late receives the time at which it was due, so that delays do not add up.
package mediaclock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	// Tick is the period of the clock.
	Tick = 5 * time.Millisecond
	// MaxDelay is the delay above which a tick counts as late. Up to it, two packets are at most 30 ms apart, and the
	// jitter buffers of phones hold more than that.
	MaxDelay = media.FrameTime / 2
	// phases is the number of groups into which streams are divided. The groups are called at different times within
	// a frame.
	phases = int(media.FrameTime / Tick)
	// fewStreams is the number of streams up to which the clock also wakes when packets arrive, and does not wake for
	// ticks that have nothing to do. With more streams, reading packets every half tick takes less CPU.
	fewStreams = 32
	// catchUp is the maximum delay after which the clock still runs every missed tick. After a longer delay it skips
	// the missed ticks, because a burst of old frames is useless.
	catchUp = 50 * time.Millisecond
)

// Stream is called once for each frame.
type Stream interface {
	// Tick is called on the clock's goroutine. Each due is media.FrameTime after the previous due, or a multiple of
	// FrameTime if the clock skipped ticks. Tick must not block or call the remove function of any stream or hook.
	Tick(due time.Time)
}

// Split is the second stream of AddSplit.
type Split interface {
	Stream
	// IsIdle reports whether the next Tick would do nothing. It is called on the clock's goroutine.
	IsIdle() bool
}

// Sockets is a hook that reads packets. FD returns a descriptor that is readable while packets wait.
type Sockets interface {
	Stream
	FD() int
}

// Clock calls streams. The zero value is ready to use. All methods may be called from any goroutine. Adding and
// removing streams never make the clock wait.
type Clock struct {
	// Precise makes the clock wait for a kernel timer. Kernel timers are about 0.5 ms more accurate than timers of the
	// Go runtime, because the runtime's poller rounds to milliseconds. Precise does not work with fake time.
	Precise bool
	// Scatter makes the clock start at a random moment and put streams into random groups. Load generators set it, because
	// the clocks of phones do not depend on each other or on the server.
	Scatter bool

	mu      sync.Mutex // held while the lists change
	lists   [phases]atomic.Pointer[[]*entry]
	hooks   atomic.Pointer[[]*entry]
	loaded  [phases]int
	streams atomic.Int64  // number of streams in lists
	wake    chan struct{} // has a value after the first stream was added; created by signal

	ticks, late, skipped, worst atomic.Int64
}

// Stats describes the timing of a clock.
type Stats struct {
	Ticks   int64         // ticks run
	Late    int64         // ticks that began more than MaxDelay after they were due
	Skipped int64         // ticks that were skipped because the clock was too late
	Worst   time.Duration // longest delay of a tick
}

// Stats returns the timing since the start.
func (c *Clock) Stats() Stats {
	return Stats{c.ticks.Load(), c.late.Load(), c.skipped.Load(), time.Duration(c.worst.Load())}
}

// signal returns the channel that wakes Run.
func (c *Clock) signal() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	return c.wake
}

// Run runs the clock until ctx ends. Only one Run may be active at a time. The clock stops while there is no stream, so
// that an idle process uses no CPU.
func (c *Clock) Run(ctx context.Context) {
	wake := c.signal()
	due := c.firstTick()
	w := waiter{clock: c, timer: c.newTimer()}
	defer w.timer.stop()
	for n := 0; ; n++ {
		for c.streams.Load() == 0 {
			select {
			case <-ctx.Done():
				return
			case <-wake:
			}
			due = c.firstTick()
		}
		if n, due = w.wait(ctx, n, due); ctx.Err() != nil {
			return
		}
		lateness := time.Since(due)
		if lateness > catchUp {
			miss := int(lateness / Tick)
			c.skipped.Add(int64(miss))
			n += miss
			due = due.Add(time.Duration(miss) * Tick)
		}
		c.recordLateness(lateness)
		c.tick(n%phases, due)
		due = due.Add(Tick)
	}
}

func (c *Clock) firstTick() time.Time {
	due := time.Now().Add(Tick)
	if c.Scatter {
		due = due.Add(rand.N(Tick)) //nolint:gosec // not a secret
	}
	return due
}

func (c *Clock) recordLateness(lateness time.Duration) {
	c.ticks.Add(1)
	if lateness > MaxDelay {
		c.late.Add(1)
	}
	if int64(lateness) > c.worst.Load() {
		c.worst.Store(int64(lateness))
	}
}

// tick calls the hooks and the streams of a phase.
func (c *Clock) tick(phase int, due time.Time) {
	for _, list := range []*[]*entry{c.hooks.Load(), c.lists[phase].Load()} {
		if list != nil {
			for _, e := range *list {
				e.call(due)
			}
		}
	}
}

// idleTicks returns the number of ticks from tick n on that have no stream to call.
func (c *Clock) idleTicks(n int) int {
	for idle := range phases - 1 {
		list := c.lists[(n+idle)%phases].Load()
		if list != nil && slices.ContainsFunc(*list, (*entry).isDue) {
			return idle
		}
	}
	return phases - 1
}

// Add makes the clock call s once for each frame, in the group with the fewest streams. The first call comes within a frame,
// or a tick later with few streams. After remove has returned, s is not running and is not called again. remove may be
// called twice.
func (c *Clock) Add(s Stream) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	phase := c.nextPhase()
	c.loaded[phase]++
	return c.add(&c.lists[phase], s, &c.loaded[phase])
}

// nextPhase returns the group of the next stream: the one with the fewest streams, or a random one. The caller holds c.mu.
func (c *Clock) nextPhase() int {
	if c.Scatter {
		return rand.IntN(phases) //nolint:gosec // not a secret
	}
	phase := 0
	for p, n := range c.loaded {
		if n < c.loaded[phase] {
			phase = p
		}
	}
	return phase
}

// AddSplit does what Add does. In addition, the clock calls mid half a frame after each call of s. With few
// streams it may skip the call while mid is idle.
func (c *Clock) AddSplit(s Stream, mid Split) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	phase := c.nextPhase()
	c.loaded[phase]++
	first := c.add(&c.lists[phase], s, &c.loaded[phase])
	second := c.add(&c.lists[(phase+phases/2)%phases], mid, new(int))
	return func() { first(); second() }
}

// Hook makes the clock call s at each tick, before the streams. Without streams there are no ticks; with few streams, the
// clock skips ticks in which no stream is due. If s implements Sockets, the clock also calls it when packets arrive (few
// streams) or halfway between two ticks (more). remove works as described for Add.
func (c *Clock) Hook(s Stream) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(&c.hooks, s, new(int))
}

// add adds a stream to a list. The caller holds c.mu.
func (c *Clock) add(list *atomic.Pointer[[]*entry], s Stream, count *int) (remove func()) {
	e := &entry{stream: s}
	e.split, _ = s.(Split)
	e.sockets, _ = s.(Sockets)
	change(list, func(old []*entry) []*entry { return append(old, e) })
	streams := int64(1)
	if list == &c.hooks {
		streams = 0
	}
	if c.streams.Add(streams) == 1 && c.wake != nil {
		select {
		case c.wake <- struct{}{}:
		default: // Run has not taken the last signal yet
		}
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		*count--
		c.streams.Add(-streams)
		change(list, func(old []*entry) []*entry {
			rest := old[:0]
			for _, o := range old {
				if o != e {
					rest = append(rest, o)
				}
			}
			return rest
		})
		c.mu.Unlock()
		e.mu.Lock()
		e.removed = true
		e.mu.Unlock()
	})
}

// change edits a copy of the list, because the clock may be reading the list.
func change(list *atomic.Pointer[[]*entry], edit func([]*entry) []*entry) {
	var updated []*entry
	if old := list.Load(); old != nil {
		updated = make([]*entry, len(*old), len(*old)+1)
		copy(updated, *old)
	}
	updated = edit(updated)
	list.Store(&updated)
}

type entry struct {
	mu      sync.Mutex // held while the stream is called
	removed bool
	stream  Stream
	split   Split   // stream, if it is one
	sockets Sockets // stream, if it is one
}

// call calls the stream. It does nothing if the entry is locked, because then the stream is being removed.
func (e *entry) call(due time.Time) {
	if !e.mu.TryLock() {
		return
	}
	defer e.mu.Unlock()
	if !e.removed {
		e.stream.Tick(due)
	}
}

// isDue reports whether the next call would do something.
func (e *entry) isDue() bool {
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	return !e.removed && (e.split == nil || !e.split.IsIdle())
}
