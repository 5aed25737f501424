package admission

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// queueGauge estimates the number of calls in the dial queue, so that not every order has to count them. It adds each
// order of this process as soon as the order is admitted. The next count includes the orders of other processes.
type queueGauge struct {
	mu       sync.Mutex
	depth    orgCounts // result of the last count
	since    orgCounts // orders admitted since the last count
	under    orgCounts // orders admitted, but not answered yet
	during   orgCounts // orders admitted during the running count
	until    time.Time
	counting chan struct{} // closed when the running count ends; nil if none runs
	drained  int           // calls that left the queue in the minute before drainAt
	drainAt  time.Time
	draining chan struct{} // closed when the running count of drained calls ends; nil if none runs
}

// orgCounts holds a number of calls in total and for each organization.
type orgCounts struct {
	n  int
	by map[string]int
}

// newCounts returns the counts by organization together with their total.
func newCounts(by map[string]int) orgCounts {
	t := orgCounts{by: by}
	for _, n := range by {
		t.n += n
	}
	return t
}

// add adds n calls of an organization. It deletes an organization whose count becomes 0.
func (t *orgCounts) add(org string, n int) {
	if t.by == nil {
		t.by = map[string]int{}
	}
	t.n += n
	if t.by[org] += n; t.by[org] == 0 {
		delete(t.by, org)
	}
}

// hasRoom reports whether an organization may queue one more call. It may if the total is below the ceiling, or if the
// organization is below its share: the ceiling divided by the number of organizations with waiting calls. Thus no
// organization can block others. A negative ceiling admits no calls.
func (g *queueGauge) hasRoom(org string, ceiling int) bool {
	if g.depth.n+g.since.n < ceiling {
		return true
	}
	if ceiling < 0 {
		return false
	}
	waiting := 1 // the organization itself counts as waiting
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

// Counting a deep queue is slow. A count therefore stays valid for countShare times its duration, but at most for
// maxCountAge.
const (
	countShare  = 20
	maxCountAge = time.Second
)

// admit reserves a place in the queue for an organization if there is room. A new count delays only the order that
// runs it, unless the last count shows no room.
func (g *queueGauge) admit(
	ctx context.Context, org string, ceiling int, count func(context.Context) (map[string]int, error),
) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for counted := false; ; {
		room := !g.until.IsZero() && g.hasRoom(org, ceiling)
		// If the queue seems full, but the estimate includes answered orders, count again: some of them may not have
		// become calls.
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

// wait releases the lock while it waits for the running count.
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

// count releases the lock while it counts. An order that is admitted during the count may be counted twice, but is
// never missed.
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

// Reserve reserves a place in the dial queue for an order. The caller must call leave when the order is answered, even
// if it did not become a call. If the queue is full and the organization has used its share, Reserve returns
// CodeDialQueueFull.
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

// retryAfter estimates the time until the queue has room. Only one goroutine at a time counts the calls that left the
// queue. Other goroutines use the previous result, or wait if there is none.
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

// drain counts the calls that left the queue in the last minute. It releases the lock meanwhile.
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

// unlocked releases the lock while it runs count.
func unlocked[T any](ctx context.Context, g *queueGauge, count func(context.Context) (T, error)) (T, error) {
	g.mu.Unlock()
	defer g.mu.Lock()
	return count(ctx)
}

// drainTime estimates how long a queue takes to empty, from 1 s to 60 s. depth is the number of calls in the queue,
// drained the number of calls that left it in the last minute.
func drainTime(depth, drained int) time.Duration {
	if drained == 0 {
		return time.Minute
	}
	seconds := (depth*60 + drained - 1) / drained
	return time.Duration(min(max(seconds, 1), 60)) * time.Second
}
