// Package groupcommit combines concurrent writes: items that arrive while a write runs are written together by the
// next write.
package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Group combines writes of items. Set its exported fields before the first use; it is then safe for concurrent use.
type Group[T any] struct {
	// Write writes up to MaxItems items. It returns one result for each item, or an error if it wrote nothing.
	Write func(ctx context.Context, items []T) ([]error, error)
	// MaxItems is the maximum number of items in one write; 0 means 64.
	MaxItems int
	// MinInterval is the minimum time between two writes. A single item does not wait; many items are combined.
	MinInterval time.Duration
	// Timeout is the maximum duration of a write; 0 means 30 s. A write also ends at the last deadline of its
	// callers.
	Timeout time.Duration
	// IsItemError reports whether a single item caused the error of a write. Do then tries each item again alone, a
	// few at the same time. Nil means that no item ever causes an error.
	IsItemError func(error) bool
	// Wait makes Do wait for the end of a write that has started, even after the context of Do ended. It is for
	// callers that release a resource when Do returns.
	Wait bool

	mu         sync.Mutex
	waiting    []*entry[T]
	writing    bool
	last       time.Time // time at which the last write ended
	once       sync.Once
	aloneSlots chan struct{} // limits the items that are tried alone
}

// mostAlone is the maximum number of items that are tried alone at the same time.
const mostAlone = 4

// entry is an item that waits for its write.
type entry[T any] struct {
	item T
	ctx  context.Context //nolint:containedctx // of the waiting caller
	err  error
	// alone is set if the caller has to try the item again alone.
	alone bool
	done  chan struct{} // closed after the write, or when alone is set
	lead  chan struct{} // tells the caller to write all waiting items
}

// Do writes an item and returns its result. If ctx ends first, the item may still be written. With Wait set, Do then
// waits for the end of a write that has started. So does a Do that runs Write for all.
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

// result returns the result of an entry. If needed, it tries the item again alone.
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

// drop removes an entry whose write has not started, and reports whether it removed the entry.
func (g *Group[T]) drop(e *entry[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := slices.Index(g.waiting, e)
	if n < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, n, n+1)
	select {
	case <-e.lead: // the dropped caller was the leader of the next write
		g.next()
	default:
	}
	return true
}

// next makes the caller that has waited longest the leader, who writes all waiting items. The caller of next holds
// the lock.
func (g *Group[T]) next() {
	if g.writing = len(g.waiting) > 0; g.writing {
		g.waiting[0].lead <- struct{}{}
	}
}

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
			if !whole { // the write panicked; the leader passes the panic on
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

// all writes the entries in one write. If an item caused the write to fail, all marks each entry so that its caller
// tries it again alone.
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
	// All callers share the write, so the end of one caller's context must not cancel it.
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

// until returns the deadline of a write: the last deadline of its callers, but at most Timeout from now.
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

// Column returns one field of all items, as an array argument for a statement.
func Column[T, V any](items []T, of func(T) V) []V {
	all := make([]V, len(items))
	for n, item := range items {
		all[n] = of(item)
	}
	return all
}
