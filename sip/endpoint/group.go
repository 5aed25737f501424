package endpoint

import (
	"context"
	"sync"
)

// A group waits for goroutines. Unlike a sync.WaitGroup it may grow during the
// wait, and it closes when the wait succeeds.
type group struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // closed when n falls to 0; nil if nobody waits
}

func (g *group) add() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

func (g *group) run(f func()) bool {
	if !g.add() {
		return false
	}
	go func() {
		defer g.done()
		f()
	}()
	return true
}

func (g *group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle, g.closed = nil, true
	}
}

// wait returns true when the last goroutine has ended, and false when ctx ends
// first.
func (g *group) wait(ctx context.Context) bool {
	g.mu.Lock()
	if g.n == 0 {
		g.closed = true
		g.mu.Unlock()
		return true
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}
