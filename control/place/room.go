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
	mu      sync.Mutex
	depth   int // when it was counted
	since   int // admitted since
	under   int // admitted, and not answered yet
	until   time.Time
	drained int // left the queue in the minute before drainAt
	drainAt time.Time
}

// Counting takes its time where the queue is deep: a count is good for so many
// times as long as it took, up to a second.
const (
	countShare  = 20
	longestSeen = time.Second
)

// Room refuses with CodeDialQueueFull while the dial queue is at its ceiling.
// What it admits takes a place in it until leave is called, whether or not it
// came to be a call.
func (d *Desk) Room(ctx context.Context) (leave func(), err error) {
	ceiling := d.QueueDepth
	if ceiling == 0 {
		ceiling = 1000
	}
	g := &d.queue
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	// What was admitted and became no call is in the way only until it is
	// counted.
	if now.After(g.until) || g.depth+g.since >= ceiling && g.since > g.under {
		// One counts, the others wait for it: they all want to know the same.
		if g.depth, err = d.Store.Depth(ctx); err != nil {
			return nil, err
		}
		g.since = g.under // some of these were counted: never too few
		g.until = time.Now().Add(min(countShare*time.Since(now), longestSeen))
	}
	if g.depth+g.since < ceiling {
		g.since++
		g.under++
		return func() { g.mu.Lock(); defer g.mu.Unlock(); g.under-- }, nil
	}
	if now.After(g.drainAt.Add(longestSeen)) {
		if g.drained, err = d.Store.Drained(ctx); err != nil {
			return nil, err
		}
		g.drainAt = now
	}
	return nil, &control.Error{
		Code: control.CodeDialQueueFull, Message: "the dial queue is full; repeat the request with the same Idempotency-Key",
		RetryAfter: drainTime(g.depth, g.drained),
	}
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
