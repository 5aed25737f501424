// Package thrift spares memory while something large is in the works.
package thrift

import (
	"runtime/debug"
	"sync"
)

// thrifty is the garbage collector's percentage while it is: the
// heap stays close to what lives, for more of the processor's time.
const thrifty = 30

// A Thrift counts what is in the works. It is safe for concurrent use.
type Thrift struct {
	mu     sync.Mutex
	n      int
	before int // the percentage without them
}

// Begin spares memory until end is called.
func (t *Thrift) Begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n++; t.n == 1 {
		t.before = debug.SetGCPercent(thrifty)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.n--; t.n == 0 {
			debug.SetGCPercent(t.before)
		}
	}
}
