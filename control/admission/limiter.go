package admission

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// defaultLimit is the default of Limiter.Max. More concurrency would not make the database faster.
const defaultLimit = 12

// maxQueueTime is the maximum expected wait. An order that would wait longer is refused at once with a Retry-After.
const maxQueueTime = 3 * time.Second

// The rate of admissions is measured over about rateWindow. It counts as unknown until orders have waited minWaited
// in total, or minAdmitted orders were admitted.
const (
	rateWindow  = 3 * time.Second
	minWaited   = time.Second
	minAdmitted = 8
)

// Limiter limits how many orders are processed at a time. Other orders wait in order of arrival and hold no
// resources, so that admitted orders are answered even during a flood of orders. The zero value is ready to use.
type Limiter struct {
	Max int // orders processed at a time; 0 means 12

	once sync.Once
	free chan struct{}

	mu      sync.Mutex
	waiting int
	// Exponentially decaying sums: the number of admissions, and the time during which at least one order waited.
	// Their quotient is the admission rate, even if admissions come in bursts.
	admitted float64
	waited   time.Duration
	last     time.Time // time at which the sums were last updated
}

// Enter waits until the order may proceed. The caller must call leave when it has processed the order. Enter refuses
// an order whose expected wait exceeds maxQueueTime.
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

// decay updates the decaying sums to the current time. The caller holds the lock.
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

// wait returns the expected wait of a new order, or 0 if the rate is unknown. The caller holds the lock.
func (g *Limiter) wait() time.Duration {
	g.decay()
	if g.waited < minWaited && g.admitted < minAdmitted {
		return 0
	}
	return time.Duration(float64(g.waiting) * float64(g.waited) / max(g.admitted, 1))
}

// join adds an order to the queue, or refuses it if the expected wait is too long.
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

// quit removes an order from the queue. turn reports whether the order was admitted.
func (g *Limiter) quit(turn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decay()
	g.waiting--
	if turn {
		g.admitted++
	}
}
