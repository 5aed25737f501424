// Package group lets those who write at the same time share one write: while one
// is under way the others gather, and go together in the next.
package group

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A Group gathers items. Its fields are set before its first use; it is then safe
// for concurrent use.
type Group[T any] struct {
	// Write writes some items at once, at most Most. It returns what became of
	// each, in their order, or an error where nothing was written.
	Write func(ctx context.Context, items []T) ([]error, error)
	// Most is how many items one write takes; 0 means 64.
	Most int
	// Apart is the least time from the end of a write to the next: a lone item waits
	// for nothing, a flood comes in few writes.
	Apart time.Duration
	// Within bounds a write, as the deadlines of all who wait for it do; 0 means 30 s.
	Within time.Duration
	// Blames tells an error that one of the items brought about, so that each is
	// tried alone, a few at a time, beside those that come next; from one that any
	// would meet. Nil blames nobody.
	Blames func(error) bool
	// Stays keeps who is being written until it is known what became of the item,
	// though its context ends: for those who let go of something when Do returns.
	Stays bool

	mu      sync.Mutex
	waiting []*entry[T]
	writing bool
	last    time.Time // when the last write ended
	once    sync.Once
	few     chan struct{} // has those that are tried alone
}

// mostAlone is how many are tried alone at a time.
const mostAlone = 4

// An entry is an item on its way.
type entry[T any] struct {
	item T
	ctx  context.Context //nolint:containedctx // of who waits for it
	err  error
	// alone is set where it is to be tried alone, by who waits for it.
	alone bool
	done  chan struct{} // closed when it is written, or to be tried alone
	lead  chan struct{} // told to write for all
}

// Do writes an item and returns what became of it. Where ctx ends first, the item
// is not written any more, or it is not known whether it is: the latter never where
// the group Stays, but for a write that is given up.
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
		return g.outcome(e)
	case <-e.lead:
		g.write()
		<-e.done
		return g.outcome(e)
	case <-ctx.Done():
	}
	if g.drop(e) || !g.Stays {
		return ctx.Err()
	}
	<-e.done
	return g.outcome(e)
}

// outcome is what became of an entry, after it was tried alone if it must be.
func (g *Group[T]) outcome(e *entry[T]) error {
	if !e.alone {
		return e.err
	}
	g.once.Do(func() { g.few = make(chan struct{}, mostAlone) })
	ctx, cancel := context.WithTimeout(e.ctx, g.within())
	defer cancel()
	select {
	case g.few <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.few }()
	g.all([]*entry[T]{e})
	return e.err
}

// drop takes an entry back, unless it is being written or was.
func (g *Group[T]) drop(e *entry[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := slices.Index(g.waiting, e)
	if n < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, n, n+1)
	select {
	case <-e.lead: // it was to write: another must
		g.next()
	default:
	}
	return true
}

// next has the first of those who wait write for all. The lock is held.
func (g *Group[T]) next() {
	if g.writing = len(g.waiting) > 0; g.writing {
		g.waiting[0].lead <- struct{}{}
	}
}

// write takes those who wait and writes what they have.
func (g *Group[T]) write() {
	g.pause()
	g.mu.Lock()
	some := g.waiting
	if most := g.most(); len(some) > most {
		some = some[:most:most]
	}
	g.waiting = g.waiting[len(some):]
	g.mu.Unlock()
	whole := false
	defer func() {
		for _, e := range some {
			if !whole { // the write panics, and its panic goes on in who wrote
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

// errBroken is what became of those whose write panicked.
var errBroken = errors.New("the write broke off")

// pause waits until the next write may begin.
func (g *Group[T]) pause() {
	g.mu.Lock()
	wait := g.Apart - time.Since(g.last)
	g.mu.Unlock()
	if wait > 0 {
		<-time.After(wait)
	}
}

// all writes entries at once. Where one of them is to blame that this fails, each
// is left to be tried alone.
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
	// The write is everybody's: that one of them gave up must not end it.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(live[0].ctx), g.until(live))
	defer cancel()
	each, err := g.Write(ctx, items)
	switch {
	case err == nil:
		for n, e := range live {
			e.err = each[n]
		}
	case len(live) == 1 || ctx.Err() != nil || g.Blames == nil || !g.Blames(err):
		for _, e := range live {
			e.err = err
		}
	default:
		for _, e := range live {
			e.alone = true
		}
	}
}

func (g *Group[T]) most() int {
	if g.Most == 0 {
		return 64
	}
	return g.Most
}

// until is when a write is given up: when nobody may wait for it any more, and at
// most Within from now.
func (g *Group[T]) until(live []*entry[T]) time.Time {
	var last time.Time
	most := time.Now().Add(g.within())
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

func (g *Group[T]) within() time.Duration {
	if g.Within == 0 {
		return 30 * time.Second
	}
	return g.Within
}

// Column makes of one field of all items an argument of a statement that writes
// them at once.
func Column[T, V any](items []T, of func(T) V) []V {
	all := make([]V, len(items))
	for n, item := range items {
		all[n] = of(item)
	}
	return all
}
