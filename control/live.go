package control

import (
	"context"
	"errors"
	"sync"
)

// Why a running call is made to end; the cause of its context.
var (
	errAsked     = errors.New("asked to end")
	errShutdown  = errors.New("the node shuts down")
	errLeaseLost = errors.New("the lease is lost")
)

// Live is the table of the calls on this node. Its zero value is ready.
type Live struct {
	mu    sync.Mutex
	calls map[string]*liveCall // by call id
}

type liveCall struct {
	lease Lease
	end   context.CancelCauseFunc
	leave chan struct{} // closed when the agent is to say goodbye
	over  chan struct{} // closed when the call's record is written
}

// Count returns how many calls are on.
func (l *Live) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// End makes a call end. The channel it returns is closed when the call's end
// is written down; it is nil if the call is not on this node.
func (l *Live) End(callID string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.calls[callID]
	if !ok {
		return nil
	}
	c.end(errAsked)
	return c.over
}

func (l *Live) enter(lease Lease, end context.CancelCauseFunc) *liveCall {
	c := &liveCall{lease: lease, end: end, leave: make(chan struct{}), over: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[string]*liveCall{}
	}
	l.calls[lease.CallID] = c
	return c
}

func (l *Live) leave(c *liveCall) {
	l.mu.Lock()
	if l.calls[c.lease.CallID] == c {
		delete(l.calls, c.lease.CallID)
	}
	l.mu.Unlock()
	close(c.over)
}

// attempts returns the ids of the attempts that this node makes.
func (l *Live) attempts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]string, 0, len(l.calls))
	for _, c := range l.calls {
		ids = append(ids, c.lease.AttemptID)
	}
	return ids
}

// keepOnly ends those of the asked-for attempts that are not held any more.
func (l *Live) keepOnly(asked []string, held []Lease) {
	epochs := map[string]int64{}
	for _, h := range held {
		epochs[h.AttemptID] = h.Epoch
	}
	want := map[string]bool{}
	for _, id := range asked {
		want[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if epoch, ok := epochs[c.lease.AttemptID]; want[c.lease.AttemptID] && (!ok || epoch != c.lease.Epoch) {
			c.end(errLeaseLost)
		}
	}
}

// leaveAll has the agents of all calls say goodbye. It is for once.
func (l *Live) leaveAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		close(c.leave)
	}
}

func (l *Live) endAll(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		c.end(cause)
	}
}
