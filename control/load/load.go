// Package load knows whether requests are answered as fast as they should be, so
// that what may wait makes room for them.
package load

import (
	"sync"
	"time"
)

// What requests should take, how many of a second it takes to tell, and how much
// each counts for.
const (
	target  = 12 * time.Millisecond
	longest = 200 * time.Millisecond // one that takes longer counts as this
	few     = 20
	share   = 1.0 / 32
)

// A Load is what requests took lately. Its zero value is ready, and it may be used
// by any goroutine.
type Load struct {
	mu    sync.Mutex
	mean  time.Duration // moving
	since time.Time     // when the second that is counted began
	count int           // requests of that second
	had   int           // of the one before
}

// Request is told how long a request took.
func (l *Load) Request(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
	l.count++
	l.mean += time.Duration(share * float64(min(took, longest)-l.mean))
}

// High reports whether there are many requests, and they take too long.
func (l *Load) High() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
	return max(l.count, l.had) >= few && l.mean > target
}

// turn begins a second.
func (l *Load) turn(now time.Time) {
	switch gone := now.Sub(l.since); {
	case gone >= 2*time.Second:
		l.since, l.had, l.count, l.mean = now, 0, 0, 0
	case gone >= time.Second:
		l.since, l.had, l.count = now, l.count, 0
	}
}
