package place

import (
	"context"
	"sync"
)

// mostOrders is how many orders are looked at at a time: more than that the
// database does no faster.
const mostOrders = 12

// A gate lets so many orders be looked at. The others wait in turn and hold
// nothing meanwhile, so that in a flood those that are in are answered, and
// little is done in vain for those that wait too long. Its zero value is ready.
type gate struct {
	once sync.Once
	free chan struct{}
}

// enter waits for a place. It is kept until leave is called.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	g.once.Do(func() { g.free = make(chan struct{}, mostOrders) })
	select {
	case g.free <- struct{}{}:
		return func() { <-g.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
