package place

import (
	"context"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// A gauge knows how deep the dial queue is without counting it each time. What
// this process adds it knows at once, what others do when it counts.
type gauge struct {
	mu       sync.Mutex
	depth    int // when it was counted
	since    int // admitted since
	under    int // admitted, and not answered yet
	admitted int // ever
	until    time.Time
	counting chan struct{} // closed when the count under way is over; nil where none is
	drained  int           // left the queue in the minute before drainAt
	drainAt  time.Time
	draining chan struct{} // closed when the count of these is over; nil where none is
}

// Counting takes its time where the queue is deep: a count is good for so many
// times as long as it took, up to a second.
const (
	countShare  = 20
	longestSeen = time.Second
)

// admit takes a place below a ceiling, if there is one. Where there is one by the
// last count nobody waits for the next but who counts.
func (g *gauge) admit(ctx context.Context, ceiling int, count func(context.Context) (int, error)) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for counted := false; ; {
		room := !g.until.IsZero() && g.depth+g.since < ceiling
		// What was admitted and became no call is in the way only until it is
		// counted.
		old := time.Now().After(g.until) || !room && g.since > g.under
		switch {
		case counted || !old, room && g.counting != nil:
			if room {
				g.since++
				g.under++
				g.admitted++
			}
			return room, nil
		case g.counting != nil:
			if err := g.wait(ctx, g.counting); err != nil {
				return false, err
			}
		default:
			if err := g.count(ctx, count); err != nil {
				return false, err
			}
			counted = true
		}
	}
}

// wait waits for a count under way, without the lock.
func (g *gauge) wait(ctx context.Context, over <-chan struct{}) error {
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// count counts without the lock. Some of those who were under way, or were
// admitted meanwhile, are counted twice: never too few.
func (g *gauge) count(ctx context.Context, count func(context.Context) (int, error)) error {
	over, under, before, began := make(chan struct{}), g.under, g.admitted, time.Now()
	g.counting = over
	defer func() {
		g.counting = nil
		close(over)
	}()
	depth, err := g.unlocked(ctx, count)
	if err != nil {
		return err
	}
	g.depth, g.since = depth, under+g.admitted-before
	g.until = time.Now().Add(min(countShare*time.Since(began), longestSeen))
	return nil
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
}

// Room refuses with CodeDialQueueFull while the dial queue is at its ceiling.
// What it admits takes a place in it until leave is called, whether or not it
// came to be a call.
func (d *Desk) Room(ctx context.Context) (leave func(), err error) {
	ceiling := d.QueueDepth
	if ceiling == 0 {
		ceiling = 1000
	}
	g := &d.queue
	room, err := g.admit(ctx, ceiling, d.Store.Depth)
	if err != nil {
		return nil, err
	}
	if room {
		return g.leave, nil
	}
	again, err := g.again(ctx, d.Store.Drained)
	if err != nil {
		return nil, err
	}
	return nil, &control.Error{
		Code: control.CodeDialQueueFull, Message: "the dial queue is full; repeat the request with the same Idempotency-Key", RetryAfter: again,
	}
}

// again is when to come again where there is no room. What drained is counted
// without the lock, by one at a time; the others go by the last count, and wait for
// the first.
func (g *gauge) again(ctx context.Context, count func(context.Context) (int, error)) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for time.Now().After(g.drainAt.Add(longestSeen)) {
		if g.draining == nil {
			if err := g.drain(ctx, count); err != nil {
				return 0, err
			}
			break
		}
		if !g.drainAt.IsZero() {
			break
		}
		if err := g.wait(ctx, g.draining); err != nil {
			return 0, err
		}
	}
	return drainTime(g.depth, g.drained), nil
}

// drain counts what left the queue, without the lock.
func (g *gauge) drain(ctx context.Context, count func(context.Context) (int, error)) error {
	over := make(chan struct{})
	g.draining = over
	defer func() {
		g.draining = nil
		close(over)
	}()
	drained, err := g.unlocked(ctx, count)
	if err != nil {
		return err
	}
	g.drained, g.drainAt = drained, time.Now()
	return nil
}

// unlocked counts without the lock.
func (g *gauge) unlocked(ctx context.Context, count func(context.Context) (int, error)) (int, error) {
	g.mu.Unlock()
	defer g.mu.Lock()
	return count(ctx)
}

// drainTime estimates how long a queue takes of which drained left in the last
// minute: 1 to 60 s.
func drainTime(depth, drained int) time.Duration {
	if drained == 0 {
		return time.Minute
	}
	seconds := (depth*60 + drained - 1) / drained
	return time.Duration(min(max(seconds, 1), 60)) * time.Second
}
