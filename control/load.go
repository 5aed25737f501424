package control

import (
	"sync"
	"time"
)

// Parameters of RequestLoad.
const (
	loadTarget  = 12 * time.Millisecond  // batches shrink while the mean latency is above this
	loadClamp   = 200 * time.Millisecond // slower requests count as this latency
	loadMinRate = 20                     // the mean is ignored below this number of requests per second
	loadWeight  = 1.0 / 32               // weight of one request in the moving mean
)

// Sizes of batches. While requests are slow, each batch is a quarter smaller than the one before. Afterwards each
// batch is one item larger than the one before, because a full batch at once would slow the requests again.
const (
	minBatch   = 4
	maxBatch   = 32
	batchPause = 80 * time.Millisecond
)

// RequestLoad measures the latency of HTTP requests, and limits deferrable work while requests are slow. The zero
// value is ready to use. It is safe for concurrent use.
type RequestLoad struct {
	mu    sync.Mutex
	mean  time.Duration // moving mean of the latency
	since time.Time     // start of the current second
	count int           // requests in the current second
	prev  int           // requests in the previous second
	batch int           // current batch size; 0 means no limit
}

// Observe records how long a request took.
func (l *RequestLoad) Observe(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(time.Now())
	l.count++
	l.mean += time.Duration(loadWeight * float64(min(took, loadClamp)-l.mean))
}

// Batch returns how many items of deferrable work may start now, and the pause before the next batch; 0 means no
// pause. It must be called once for each batch.
func (l *RequestLoad) Batch() (int, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(time.Now())
	busy := max(l.count, l.prev) >= loadMinRate
	switch {
	case busy && l.mean > loadTarget:
		l.batch = max(minBatch, l.batch*3/4)
	case !busy, l.batch == 0, l.batch == maxBatch:
		l.batch = 0
		return maxBatch, 0
	default:
		l.batch++
	}
	return l.batch, batchPause
}

func (l *RequestLoad) advance(now time.Time) {
	switch gone := now.Sub(l.since); {
	case gone >= 2*time.Second:
		l.since, l.prev, l.count, l.mean = now, 0, 0, 0
	case gone >= time.Second:
		l.since, l.prev, l.count = now, l.count, 0
	}
}
