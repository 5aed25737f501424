package place

import (
	"cmp"
	"context"
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

// A gate lets so many orders in. The others wait in turn and hold nothing
// meanwhile, so that in a flood those that are in are answered, and nothing is
// done in vain for those that would wait too long. Its zero value is ready.
type gate struct {
	most int // 0 means mostAtOnce
	once sync.Once
	free chan struct{}

	mu      sync.Mutex
	waiting int
	each    time.Duration // from one turn to the next while others wait, on average
	last    time.Time     // of the last turn
}

// enter waits for a place. It is kept until leave is called. It refuses whom it
// would keep for too long.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	g.once.Do(func() { g.free = make(chan struct{}, cmp.Or(g.most, mostAtOnce)) })
	leave = func() { <-g.free }
	select {
	case g.free <- struct{}{}:
		g.turn(false)
		return leave, nil
	default:
	}
	if err := g.join(); err != nil {
		return nil, err
	}
	defer g.quit()
	select {
	case g.free <- struct{}{}:
		g.turn(true)
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// turn counts how fast the line moves.
func (g *gate) turn(waited bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if waited {
		g.each += (now.Sub(g.last) - g.each) / 8
	}
	g.last = now
}

// join takes the last place of the line, unless it is too far from its head.
func (g *gate) join() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := time.Duration(g.waiting) * g.each; wait > longestLine {
		return &control.Error{
			Code: control.CodeVoiceBackend, Message: "too many orders at a time; repeat the request with the same Idempotency-Key",
			RetryAfter: min(max(wait, time.Second), time.Minute),
		}
	}
	g.waiting++
	return nil
}

func (g *gate) quit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
}
