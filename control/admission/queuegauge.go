package admission

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// queueGauge estimates the depth of the dial queue without counting for every order. Own
// admissions count at once, those of other processes at the next count.
type queueGauge struct {
	mu       sync.Mutex
	depth    orgCounts // at the last count
	since    orgCounts // admitted since then
	under    orgCounts // admitted and not answered yet
	during   orgCounts // admitted during the count
	until    time.Time
	counting chan struct{} // closed after the running count; nil if none runs
	drained  int           // calls that left the queue in the minute before drainAt
	drainAt  time.Time
	draining chan struct{} // closed after the running drain count; nil if none runs
}

// orgCounts counts calls in total and by organization.
type orgCounts struct {
	n  int
	by map[string]int
}

// newCounts sums the counts.
func newCounts(by map[string]int) orgCounts {
	t := orgCounts{by: by}
	for _, n := range by {
		t.n += n
	}
	return t
}

// add adds n calls of an organization and drops zero entries.
func (t *orgCounts) add(org string, n int) {
	if t.by == nil {
		t.by = map[string]int{}
	}
	t.n += n
	if t.by[org] += n; t.by[org] == 0 {
		delete(t.by, org)
	}
}

// hasRoom reports whether an organization may queue a call: the total is below the ceiling, or the organization is
// below its share, the ceiling divided by the number of waiting organizations. So one organization cannot block the
// others. A negative ceiling admits none.
func (g *queueGauge) hasRoom(org string, ceiling int) bool {
	if g.depth.n+g.since.n < ceiling {
		return true
	}
	if ceiling < 0 {
		return false
	}
	waiting := 1 // the organization itself
	for x := range g.depth.by {
		if x != org {
			waiting++
		}
	}
	for x := range g.since.by {
		if x != org && g.depth.by[x] == 0 {
			waiting++
		}
	}
	return g.depth.by[org]+g.since.by[org] < max(ceiling/waiting, 1)
}

// A count of a deep queue is slow: it stays valid for countShare times its duration, at most maxCountAge.
const (
	countShare  = 20
	maxCountAge = time.Second
)

// admit reserves a place for an organization if there is room. While the last count shows
// room, only the counting order waits for the next count.
func (g *queueGauge) admit(
	ctx context.Context, org string, ceiling int, count func(context.Context) (map[string]int, error),
) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for counted := false; ; {
		room := !g.until.IsZero() && g.hasRoom(org, ceiling)
		// Admissions that did not become calls are corrected by the next count.
		old := time.Now().After(g.until) || !room && g.since.n > g.under.n
		switch {
		case counted || !old, room && g.counting != nil:
			if room {
				g.since.add(org, 1)
				g.under.add(org, 1)
				g.during.add(org, 1)
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

// wait waits for a running count without the lock.
func (g *queueGauge) wait(ctx context.Context, over <-chan struct{}) error {
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// count counts without the lock. Admissions during the count may be counted twice, never missed.
func (g *queueGauge) count(ctx context.Context, count func(context.Context) (map[string]int, error)) error {
	over, under, began := make(chan struct{}), maps.Clone(g.under.by), time.Now()
	g.counting, g.during = over, orgCounts{}
	defer func() {
		g.counting = nil
		close(over)
	}()
	depth, err := unlocked(ctx, g, count)
	if err != nil {
		return err
	}
	g.depth, g.since = newCounts(depth), newCounts(under)
	for org, n := range g.during.by {
		g.since.add(org, n)
	}
	g.until = time.Now().Add(min(countShare*time.Since(began), maxCountAge))
	return nil
}

func (g *queueGauge) leave(org string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under.add(org, -1)
}

// Reserve refuses with CodeDialQueueFull if the dial queue is full and the organization has its share. The reservation
// lasts until leave is called, whether or not a call was placed.
func (d *Controller) Reserve(ctx context.Context, org string) (leave func(), err error) {
	ceiling := d.QueueDepth
	if ceiling == 0 {
		ceiling = 1000
	}
	g := &d.queue
	room, err := g.admit(ctx, org, ceiling, d.Store.QueueDepth)
	if err != nil {
		return nil, err
	}
	if room {
		return func() { g.leave(org) }, nil
	}
	again, err := g.retryAfter(ctx, d.Store.ClaimedLastMinute)
	if err != nil {
		return nil, err
	}
	return nil, &control.Error{
		Code: control.CodeDialQueueFull, Message: "the dial queue is full; repeat the request with the same Idempotency-Key", RetryAfter: again,
	}
}

// retryAfter estimates when the queue has room. One goroutine counts at a time; the others
// use the last count and wait only for the first.
func (g *queueGauge) retryAfter(ctx context.Context, count func(context.Context) (int, error)) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for time.Now().After(g.drainAt.Add(maxCountAge)) {
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
	return drainTime(g.depth.n, g.drained), nil
}

// drain counts the calls that left the queue, without the lock.
func (g *queueGauge) drain(ctx context.Context, count func(context.Context) (int, error)) error {
	over := make(chan struct{})
	g.draining = over
	defer func() {
		g.draining = nil
		close(over)
	}()
	drained, err := unlocked(ctx, g, count)
	if err != nil {
		return err
	}
	g.drained, g.drainAt = drained, time.Now()
	return nil
}

// unlocked runs count without the lock.
func unlocked[T any](ctx context.Context, g *queueGauge, count func(context.Context) (T, error)) (T, error) {
	g.mu.Unlock()
	defer g.mu.Lock()
	return count(ctx)
}

// drainTime estimates how long a queue takes to empty at the rate of the last minute: 1 to 60 s.
func drainTime(depth, drained int) time.Duration {
	if drained == 0 {
		return time.Minute
	}
	seconds := (depth*60 + drained - 1) / drained
	return time.Duration(min(max(seconds, 1), 60)) * time.Second
}
