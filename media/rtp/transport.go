// Package rtp is the media of a call on the wire: audio and digits over RTP
// (RFC 3550, 3551, 4733), for any number of calls on one media clock.
//
// The clock sends each call's frame when it is due and reads what came in for
// all calls with one system call a tick; neither allocates. A call's reader
// puts the packets in order on a goroutine of its own. It runs on Linux only.
package rtp

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/pace"
)

// A Transport is what the sessions of a process share.
type Transport struct {
	clock  *pace.Clock
	ports  *Ports
	bind   netip.Addr
	public netip.Addr
	poll   *poller
	unhook func()

	mu   sync.Mutex
	open map[*Session]bool
	done Stats // of closed sessions
}

// NewTransport reads and sends on the clock, from ports of the address bind.
// Sessions are told to others at public, or at bind where that is invalid.
// Close must be called after the last session has ended.
func NewTransport(clock *pace.Clock, ports *Ports, bind, public netip.Addr) (*Transport, error) {
	if !bind.IsValid() {
		return nil, fmt.Errorf("media address missing")
	}
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	if !public.IsValid() {
		public = bind
	}
	t := &Transport{clock: clock, ports: ports, bind: bind.Unmap(), public: public, poll: p}
	t.unhook = clock.Hook(p)
	return t, nil
}

// Close lets go of what the sessions shared. It may be called twice.
func (t *Transport) Close() {
	t.mu.Lock()
	unhook := t.unhook
	t.unhook = nil
	t.mu.Unlock()
	if unhook != nil {
		unhook()
		t.poll.close()
	}
}

// Open is how many sessions are open.
func (t *Transport) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// Stats sums what all sessions have counted, those that are open and those that
// have ended. No count of it ever falls.
func (t *Transport) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.done
	for s := range t.open {
		sum.add(s.Stats())
	}
	return sum
}

// Listen opens a session on a port of its own. It hears and sends nothing
// before Start.
func (t *Transport) Listen() (*Session, error) {
	socks, err := t.ports.take(t.bind, time.Now())
	if err != nil {
		return nil, err
	}
	s := newSession(t, socks)
	if err := s.attach(); err != nil {
		socks.close()
		t.ports.give(socks.audio.Local().Port(), time.Now())
		return nil, err
	}
	t.mu.Lock()
	if t.open == nil {
		t.open = map[*Session]bool{}
	}
	t.open[s] = true
	t.mu.Unlock()
	return s, nil
}

// closed takes a session's port and counters back.
func (t *Transport) closed(s *Session) {
	t.ports.give(s.socket.Local().Port(), time.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, s)
	t.done.add(s.Stats()) // under the lock: what was counted before stays counted
}
