// Package groupcommit combines concurrent writes: while one write runs, further items
// gather and go together into the next.
package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Group gathers items. Set its exported fields before the first use; it is then safe for concurrent use.
type Group[T any] struct {
	// Write writes up to MaxItems items. It returns a result per item, or an error if nothing was written.
	Write func(ctx context.Context, items []T) ([]error, error)
	// MaxItems limits the items of a write; 0 means 64.
	MaxItems int
	// MinInterval is the minimum time between writes. A single item does not wait; a flood is combined.
	MinInterval time.Duration
	// Timeout bounds a write together with the deadlines of its items; 0 means 30 s.
	Timeout time.Duration
	// IsItemError reports whether an error is caused by one of the items; each item is then
	// retried alone, a few at a time. Nil means never.
	IsItemError func(error) bool
	// Wait makes Do wait for a started write after its context ends, for callers that
	// release something when Do returns.
	Wait bool

	mu         sync.Mutex
	waiting    []*entry[T]
	writing    bool
	last       time.Time // end of the last write
	once       sync.Once
	aloneSlots chan struct{} // limits items retried alone
}

// mostAlone limits the items retried alone at a time.
const mostAlone = 4

// entry is a pending item.
type entry[T any] struct {
	item T
	ctx  context.Context //nolint:containedctx // of the waiting caller
	err  error
	// alone is set if the caller has to retry the item alone.
	alone bool
	done  chan struct{} // closed after the write, or if alone is set
	lead  chan struct{} // signals the caller to write for all
}

// Do writes an item and returns its result. If ctx ends first, the write may still happen,
// unless Wait is set; then Do returns only after the write.
func (g *Group[T]) Do(ctx context.Context, item T) error {
	e := &entry[T]{item: item, ctx: ctx, done: make(chan struct{}), lead: make(chan struct{}, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, e)
	if !g.writing {
		g.writing = true
		e.lead <- struct{}{}
	}
	g.mu.Unlock()
	select {
	case <-e.done:
		return g.result(e)
	case <-e.lead:
		g.write()
		<-e.done
		return g.result(e)
	case <-ctx.Done():
	}
	if g.drop(e) || !g.Wait {
		return ctx.Err()
	}
	<-e.done
	return g.result(e)
}

// result returns the result of an entry and retries it alone if needed.
func (g *Group[T]) result(e *entry[T]) error {
	if !e.alone {
		return e.err
	}
	g.once.Do(func() { g.aloneSlots = make(chan struct{}, mostAlone) })
	ctx, cancel := context.WithTimeout(e.ctx, g.timeout())
	defer cancel()
	select {
	case g.aloneSlots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.aloneSlots }()
	g.all([]*entry[T]{e})
	return e.err
}

// drop removes an entry unless its write has started.
func (g *Group[T]) drop(e *entry[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := slices.Index(g.waiting, e)
	if n < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, n, n+1)
	select {
	case <-e.lead: // it was the leader
		g.next()
	default:
	}
	return true
}

// next makes the first waiting caller the leader. The lock is held.
func (g *Group[T]) next() {
	if g.writing = len(g.waiting) > 0; g.writing {
		g.waiting[0].lead <- struct{}{}
	}
}

// write writes the waiting entries.
func (g *Group[T]) write() {
	g.pause()
	g.mu.Lock()
	some := g.waiting
	if most := g.maxItems(); len(some) > most {
		some = some[:most:most]
	}
	g.waiting = g.waiting[len(some):]
	g.mu.Unlock()
	whole := false
	defer func() {
		for _, e := range some {
			if !whole { // the write panicked; the panic continues in the leader
				e.err = errBroken
			}
			close(e.done)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.last = time.Now()
		g.next()
	}()
	g.all(some)
	whole = true
}

// errBroken is the result of entries whose write panicked.
var errBroken = errors.New("group write panicked")

// pause waits until the next write may start.
func (g *Group[T]) pause() {
	g.mu.Lock()
	wait := g.MinInterval - time.Since(g.last)
	g.mu.Unlock()
	if wait > 0 {
		<-time.After(wait)
	}
}

// all writes entries at once. After an item error, each is marked to be retried alone.
func (g *Group[T]) all(some []*entry[T]) {
	var live []*entry[T]
	var items []T
	for _, e := range some {
		if e.err = e.ctx.Err(); e.err == nil {
			live, items = append(live, e), append(items, e.item)
		}
	}
	if len(live) == 0 {
		return
	}
	// The write is shared: one canceled caller must not end it.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(live[0].ctx), g.until(live))
	defer cancel()
	each, err := g.Write(ctx, items)
	switch {
	case err == nil:
		for n, e := range live {
			e.err = each[n]
		}
	case len(live) == 1 || ctx.Err() != nil || g.IsItemError == nil || !g.IsItemError(err):
		for _, e := range live {
			e.err = err
		}
	default:
		for _, e := range live {
			e.alone = true
		}
	}
}

func (g *Group[T]) maxItems() int { return cmp.Or(g.MaxItems, 64) }

// until returns the deadline of a write: the last deadline of its callers, at most Timeout from now.
func (g *Group[T]) until(live []*entry[T]) time.Time {
	var last time.Time
	most := time.Now().Add(g.timeout())
	for _, e := range live {
		end, ok := e.ctx.Deadline()
		if !ok || end.After(most) {
			return most
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}

func (g *Group[T]) timeout() time.Duration { return cmp.Or(g.Timeout, 30*time.Second) }

// Column returns one field of all items, as an array argument of a statement.
func Column[T, V any](items []T, of func(T) V) []V {
	all := make([]V, len(items))
	for n, item := range items {
		all[n] = of(item)
	}
	return all
}
