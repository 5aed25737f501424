package control

import (
	"sync"
	"time"
)

// Parameters of RequestLoad.
const (
	loadTarget  = 12 * time.Millisecond  // mean latency above which batches shrink
	loadClamp   = 200 * time.Millisecond // a slower request counts as this
	loadMinRate = 20                     // requests per second below which the mean is ignored
	loadWeight  = 1.0 / 32               // of one request in the moving mean
)

// Batch sizes of RequestLoad. Under load a batch shrinks by a quarter, then grows by
// one: full batches right away would slow the requests again.
const (
	minBatch   = 4
	maxBatch   = 32
	batchPause = 80 * time.Millisecond
)

// RequestLoad measures request latency and limits deferrable work while requests are
// slow. The zero value is ready to use. It is safe for concurrent use.
type RequestLoad struct {
	mu    sync.Mutex
	mean  time.Duration // moving
	since time.Time     // start of the current second
	count int           // requests in the current second
	prev  int           // requests in the second before
	batch int           // current batch size; 0 means unlimited
}

// Observe records the duration of a request.
func (l *RequestLoad) Observe(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(time.Now())
	l.count++
	l.mean += time.Duration(loadWeight * float64(min(took, loadClamp)-l.mean))
}

// Batch returns how many deferrable items may be taken now and the pause before the
// next batch; 0 means no pause. Call it once per batch.
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

// advance moves to the second of now.
func (l *RequestLoad) advance(now time.Time) {
	switch gone := now.Sub(l.since); {
	case gone >= 2*time.Second:
		l.since, l.prev, l.count, l.mean = now, 0, 0, 0
	case gone >= time.Second:
		l.since, l.prev, l.count = now, l.count, 0
	}
}
