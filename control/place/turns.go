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
	line [64]gate // by hash: those that share one wait for nothing worse
}

// take waits for the turn of a subgroup, or refuses whom it would keep for too
// long. The turn lasts until done is called.
func (t *turns) take(ctx context.Context, subgroup string) (done func(), err error) {
	t.once.Do(func() {
		t.seed = maphash.MakeSeed()
		for i := range t.line {
			t.line[i].most = 1
		}
	})
	return t.line[maphash.String(t.seed, subgroup)%uint64(len(t.line))].enter(ctx)
}
