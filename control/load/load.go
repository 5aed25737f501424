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
	share int           // of what may wait, taken at once; 0 is all
}

// Request is told how long a request took.
func (l *Load) Request(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
	l.count++
	l.mean += time.Duration(share * float64(min(took, longest)-l.mean))
}

// What may wait is taken so many at a time, so far apart, while others need the
// machine: never fewer than least, and more by one each time as long as requests
// are answered well. All at once again would be a flood that holds them up.
const (
	least = 4
	most  = 32
	apart = 80 * time.Millisecond
)

// Share is how many of what may wait may be taken now, and how long to wait before
// the next are; 0 is no wait. It is asked each time that some are taken.
func (l *Load) Share() (int, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(time.Now())
	many := max(l.count, l.had) >= few
	switch {
	case many && l.mean > target:
		l.share = max(least, l.share*3/4)
	case !many, l.share == 0, l.share == most:
		l.share = 0
		return most, 0
	default:
		l.share++
	}
	return l.share, apart
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
