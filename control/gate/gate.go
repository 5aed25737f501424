// Package gate lets in as many at a time as can be served, and tells the others when
// to come again.
package gate

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
)

// mostAtOnce is how many a gate lets in that says nothing else: more than that the
// database does no faster.
const mostAtOnce = 12

// longestLine is how long an order may have to wait for its turn. Who would wait
// longer is told so at once, and when to come again.
const longestLine = 3 * time.Second

// How fast a line moves is seen in about the last lineSeen. It is not known before
// somebody waited for leastSpent, or leastGiven had their turn.
const (
	lineSeen   = 3 * time.Second
	leastSpent = time.Second
	leastGiven = 8
)

// A Gate lets so many orders in. The others wait in turn and hold nothing
// meanwhile, so that in a flood those that are in are answered, and nothing is
// done in vain for those that would wait too long. Its zero value is ready.
type Gate struct {
	Most int // 0 means 12

	once sync.Once
	free chan struct{}

	mu      sync.Mutex
	waiting int
	// How fast the line moves: turns come alone or by the dozen, so they are
	// counted, and the time in which somebody waited. Both fade.
	given float64
	spent time.Duration
	last  time.Time // when they were brought up to date
}

// Enter waits for a place. It is kept until leave is called. It refuses whom it
// would keep for too long.
func (g *Gate) Enter(ctx context.Context) (leave func(), err error) {
	g.once.Do(func() { g.free = make(chan struct{}, cmp.Or(g.Most, mostAtOnce)) })
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

// pass counts the time since it was called last. The lock is held.
func (g *Gate) pass() {
	now := time.Now()
	kept := math.Exp(-float64(now.Sub(g.last)) / float64(lineSeen))
	g.given *= kept
	g.spent = time.Duration(kept * float64(g.spent))
	if g.waiting > 0 {
		g.spent += time.Duration((1 - kept) * float64(lineSeen))
	}
	g.last = now
}

// wait is how long the line is for who joins it now, 0 while that is not known.
// The lock is held.
func (g *Gate) wait() time.Duration {
	g.pass()
	if g.spent < leastSpent && g.given < leastGiven {
		return 0
	}
	return time.Duration(float64(g.waiting) * float64(g.spent) / max(g.given, 1))
}

// join takes the last place of the line, unless it is too far from its head.
func (g *Gate) join() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.wait(); wait > longestLine {
		return &control.Error{
			Code: control.CodeVoiceBackend, Message: "too many orders at a time; repeat the request with the same Idempotency-Key",
			RetryAfter: min(max(wait, time.Second), time.Minute),
		}
	}
	g.waiting++
	return nil
}

// quit leaves the line, with a turn or without.
func (g *Gate) quit(turn bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
	g.waiting--
	if turn {
		g.given++
	}
}
