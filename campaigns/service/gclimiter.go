package service

import (
	"runtime/debug"
	"sync"
)

// lowGCPercent keeps the heap close to its live size, at the cost of CPU time.
const lowGCPercent = 30

// A GCLimiter lowers the garbage collection target while large lists are processed. It
// is safe for concurrent use.
type GCLimiter struct {
	mu       sync.Mutex
	n        int
	previous int // percentage to restore at the end
}

// Begin lowers the target until every caller has called end.
func (g *GCLimiter) Begin() (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n++; g.n == 1 {
		g.previous = debug.SetGCPercent(lowGCPercent)
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.n--; g.n == 0 {
			debug.SetGCPercent(g.previous)
		}
	}
}
