package place

import (
	"context"
	"hash/maphash"
	"sync"
)

// turns let one order of a subgroup after the other to the database, so that a
// busy subgroup has one connection and not all of them. Its zero value is ready.
type turns struct {
	once sync.Once
	seed maphash.Seed
	free [64]chan struct{} // by hash: those that share one wait for nothing worse
}

// take waits for the turn of a subgroup. The turn lasts until done is called.
func (t *turns) take(ctx context.Context, subgroup string) (done func(), err error) {
	t.once.Do(func() {
		t.seed = maphash.MakeSeed()
		for i := range t.free {
			t.free[i] = make(chan struct{}, 1)
		}
	})
	c := t.free[maphash.String(t.seed, subgroup)%uint64(len(t.free))]
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
