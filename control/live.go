package control

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Causes with which the context of a running call is canceled.
var (
	errEndRequested = errors.New("end requested")
	errShutdown     = errors.New("node shutting down")
	errLeaseLost    = errors.New("lease lost")
)

// Live holds the calls that run on this node. The zero value is ready to use.
type Live struct {
	mu    sync.Mutex
	calls map[string]*liveCall // by call id
	taken int64                // calls whose lease was lost

	talking atomic.Int64 // conversations
}

type liveCall struct {
	lease   Lease
	end     context.CancelCauseFunc
	lost    bool          // the lease was lost
	goodbye chan struct{} // closed to make the agent say goodbye
	ended   chan struct{} // closed after the result was written
}

// Count returns the number of running calls.
func (l *Live) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// Talking returns the number of conversations. Calls that ring have none.
func (l *Live) Talking() int { return int(l.talking.Load()) }

// LostLeases returns the number of calls that ended because this node lost their lease.
func (l *Live) LostLeases() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// End ends a call. It returns a channel that is closed after the result was written, or nil if the call does not run
// on this node.
func (l *Live) End(callID string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.calls[callID]
	if !ok {
		return nil
	}
	c.end(errEndRequested)
	return c.ended
}

func (l *Live) add(lease Lease, end context.CancelCauseFunc) *liveCall {
	c := &liveCall{lease: lease, end: end, goodbye: make(chan struct{}), ended: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[string]*liveCall{}
	}
	l.calls[lease.CallID] = c
	return c
}

func (l *Live) remove(c *liveCall) {
	l.mu.Lock()
	if l.calls[c.lease.CallID] == c {
		delete(l.calls, c.lease.CallID)
	}
	l.mu.Unlock()
	close(c.ended)
}

func (l *Live) attempts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]string, 0, len(l.calls))
	for _, c := range l.calls {
		ids = append(ids, c.lease.AttemptID)
	}
	return ids
}

// allHeld reports whether endLost with the same arguments would end no call.
func (l *Live) allHeld(asked []string, held []Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lost(asked, held)) == 0
}

// endLost ends each running call whose attempt is in asked but whose lease is not in held.
func (l *Live) endLost(asked []string, held []Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.lost(asked, held) {
		if !c.lost {
			c.lost = true
			l.taken++
		}
		c.end(errLeaseLost)
	}
}

// lost returns each running call whose attempt is in asked but whose lease is not in held. The caller holds the lock.
func (l *Live) lost(asked []string, held []Lease) (all []*liveCall) {
	epochs := map[string]int64{}
	for _, h := range held {
		epochs[h.AttemptID] = h.Epoch
	}
	want := map[string]bool{}
	for _, id := range asked {
		want[id] = true
	}
	for _, c := range l.calls {
		if epoch, ok := epochs[c.lease.AttemptID]; want[c.lease.AttemptID] && (!ok || epoch != c.lease.Epoch) {
			all = append(all, c)
		}
	}
	return all
}

// sayGoodbye makes the agents of all calls say goodbye. It must be called only once.
func (l *Live) sayGoodbye() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		close(c.goodbye)
	}
}

func (l *Live) endAll(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		c.end(cause)
	}
}
