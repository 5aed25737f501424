package admission

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// defaultLimit is the default of Limiter.Max; more concurrency does not speed up the database.
const defaultLimit = 12

// maxQueueTime is the longest expected wait. Orders that would wait longer are refused at once with a Retry-After.
const maxQueueTime = 3 * time.Second

// The admission rate is measured over about rateWindow. It is unknown before orders waited
// for minWaited in sum, or minAdmitted were admitted.
const (
	rateWindow  = 3 * time.Second
	minWaited   = time.Second
	minAdmitted = 8
)

// Limiter limits concurrent orders. The others wait in turn without holding resources, so
// that admitted orders are answered during a flood. The zero value is ready to use.
type Limiter struct {
	Max int // 0 means 12

	once sync.Once
	free chan struct{}

	mu      sync.Mutex
	waiting int
	// Admissions and the time during which orders waited, both decaying. They give the
	// rate even if admissions come in bursts.
	admitted float64
	waited   time.Duration
	last     time.Time // time of the last update
}

// Enter waits for a place and holds it until leave is called. It refuses orders that would
// wait longer than maxQueueTime.
func (g *Limiter) Enter(ctx context.Context) (leave func(), err error) {
	g.once.Do(func() { g.free = make(chan struct{}, cmp.Or(g.Max, defaultLimit)) })
	leave = func() { <-g.free }
	select {
	case g.free <- struct{}{}:
		return leave, nil
	default:
	}
	if err := g.join(); err != nil {
		return nil, err
	}
	select {
	case g.free <- struct{}{}:
		g.quit(true)
		return leave, nil
	case <-ctx.Done():
		g.quit(false)
		return nil, ctx.Err()
	}
}

// decay accounts for the time since its last call. The lock is held.
func (g *Limiter) decay() {
	now := time.Now()
	kept := math.Exp(-float64(now.Sub(g.last)) / float64(rateWindow))
	g.admitted *= kept
	g.waited = time.Duration(kept * float64(g.waited))
	if g.waiting > 0 {
		g.waited += time.Duration((1 - kept) * float64(rateWindow))
	}
	g.last = now
}

// wait returns the expected wait of a new order; 0 while unknown. The lock is held.
func (g *Limiter) wait() time.Duration {
	g.decay()
	if g.waited < minWaited && g.admitted < minAdmitted {
		return 0
	}
	return time.Duration(float64(g.waiting) * float64(g.waited) / max(g.admitted, 1))
}

// join queues an order unless the wait is too long.
func (g *Limiter) join() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.wait(); wait > maxQueueTime {
		return &control.Error{
			Code: control.CodeVoiceBackend, Message: "too many concurrent call requests; repeat the request with the same Idempotency-Key",
			RetryAfter: min(max(wait, time.Second), time.Minute),
		}
	}
	g.waiting++
	return nil
}

// quit leaves the queue, admitted or not.
func (g *Limiter) quit(turn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decay()
	g.waiting--
	if turn {
		g.admitted++
	}
}
