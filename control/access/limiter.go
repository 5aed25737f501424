package access

import (
	"sync"
	"time"
)

// Window is the stretch of time over which requests are counted.
const Window = time.Minute

// A Limiter counts the admitted requests of each key over a sliding window. Its
// zero value is ready. It counts for its own process alone: behind n processes
// of one service a key may make up to n times its limit of requests, and a
// restart forgets what was counted.
type Limiter struct {
	mu    sync.Mutex
	log   map[string][]time.Time // by key id, oldest first
	swept time.Time
}

// A Quota is where a key stands. Limit is 0 where there is none.
type Quota struct {
	Limit, Remaining int
	// Reset is when the oldest counted request stops counting.
	Reset time.Time
}

// Admit reports whether a key may make one more request at now, and counts it
// if so. What is refused does not count: the limit is free again a window
// later at the latest. A limit of 0 or less admits everything.
func (l *Limiter) Admit(key string, limit int, now time.Time) (Quota, bool) {
	if limit <= 0 {
		return Quota{}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil {
		l.log = map[string][]time.Time{}
	}
	l.sweep(now)
	log := recent(l.log[key], now)
	ok := len(log) < limit
	if ok {
		log = append(log, now)
	}
	l.log[key] = log
	return Quota{Limit: limit, Remaining: max(limit-len(log), 0), Reset: log[0].Add(Window)}, ok
}

// recent drops what has left the window.
func recent(log []time.Time, now time.Time) []time.Time {
	for len(log) > 0 && !log[0].After(now.Add(-Window)) {
		log = log[1:]
	}
	return log
}

// sweep forgets keys that fell silent, once a window.
func (l *Limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < Window {
		return
	}
	l.swept = now
	for key, log := range l.log {
		if len(recent(log, now)) == 0 {
			delete(l.log, key)
		}
	}
}
