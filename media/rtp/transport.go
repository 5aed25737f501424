// Package rtp sends and receives audio and DTMF over RTP (RFC 3550, 3551, 4733) for any number of calls on one media
// clock.
//
// The clock sends each call's frame when it is due. Twice per tick, or with few calls when packets arrive, one system call
// finds the sockets that have packets.
// Sending and receiving do not allocate. The goroutine that calls ReadFrame puts the packets of a call in order. The
// package works on Linux only.
package rtp

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/mediaclock"
)

// Transport holds the resources that all sessions of a process share.
type Transport struct {
	clock  *mediaclock.Clock
	ports  *Ports
	bind   netip.Addr
	public netip.Addr
	poll   *poller
	unhook func()

	mu   sync.Mutex
	open map[*Session]bool
	done Stats // sum of the closed sessions
}

// NewTransport returns a transport that sends and receives on clock, with ports of the address bind. SDP shows the
// address public, or bind if public is invalid. Call Close after the last session has ended.
func NewTransport(clock *mediaclock.Clock, ports *Ports, bind, public netip.Addr) (*Transport, error) {
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

// Close releases the shared resources. It may be called twice.
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

// SessionCount returns the number of open sessions.
func (t *Transport) SessionCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// Stats returns the sums over all open and closed sessions. They never decrease.
func (t *Transport) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.done
	for s := range t.open {
		sum.add(s.Stats())
	}
	return sum
}

// Listen opens a session on a port of its own. The session sends and receives nothing before Start.
func (t *Transport) Listen() (*Session, error) {
	socks, err := t.ports.take(t.bind, time.Now())
	if err != nil {
		return nil, err
	}
	s := newSession(t, socks)
	if err := s.attach(); err != nil {
		socks.close()
		t.ports.release(socks.audio.Local().Port(), time.Now())
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

func (t *Transport) onClosed(s *Session) {
	t.ports.release(s.socket.Local().Port(), time.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, s)
	t.done.add(s.Stats()) // added under the lock, so that the sums never decrease
}
