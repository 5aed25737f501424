package signalling

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// A Session is a web call as its browser sees it: the media, and what the browser
// is told over whichever socket it has now. Its methods may be called from any
// goroutine, and never wait for the browser.
type Session struct {
	CallID string
	Leg    *leg.Leg
	// Longest is how long the call may last, as set once it begins.
	Longest time.Duration

	server      *Server
	socket      bool         // it lives by its socket; by its media alone otherwise (WHIP)
	credentials []ice.Server // with which the browser finds its way, whenever it looks for one

	resuming sync.Mutex // held by who resumes it, until its socket is another

	mu     sync.Mutex
	queue  queue
	wake   chan struct{}
	on     *conn // the socket; nil while there is none
	gone   *time.Timer
	resume string // the secret
	before string // the one that it was resumed with, while the browser may know no other
	over   bool
	state  string
}

// State tells who has the floor.
func (s *Session) State(state string) {
	s.mu.Lock()
	s.state = state
	s.mu.Unlock()
	s.tell(message{passing, stateMessage{"event", "state", state}})
}

// Transcript tells what was said; words that are not final may still change.
func (s *Session) Transcript(role, text string, final bool, turn int) {
	w := passing
	if final {
		w = worded
	}
	s.tell(message{w, transcriptMessage{"event", "transcript", role, text, final, turn}})
}

// Turn tells what a turn cost: an item of GET /v1/calls/{id}/turns.
func (s *Session) Turn(item json.RawMessage) {
	s.tell(message{lasting, turnMessage{"event", "turn", item}})
}

// Bye tells why the call is over. Nothing is told after it.
func (s *Session) Bye(reason string) {
	s.tell(message{lasting, byeMessage{"bye", reason}})
	s.mu.Lock()
	s.over = true
	if s.gone != nil {
		s.gone.Stop()
	}
	s.mu.Unlock()
	s.nudge()
	s.server.forget(s)
}

// tell queues a message. A browser that does not take what must not be lost is
// cut off: it may come again.
func (s *Session) tell(m message) {
	s.mu.Lock()
	if s.over || !s.socket {
		s.mu.Unlock()
		return
	}
	ok, on := s.queue.push(m), s.on
	s.mu.Unlock()
	if !ok && on != nil {
		on.close()
	}
	s.nudge()
}

func (s *Session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

func (s *Session) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next is the next message to send, and whether it is the last.
func (s *Session) next() (m message, ok, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok = s.queue.pop()
	return m, ok, s.over && len(s.queue.all) == 0
}

// unsent keeps a message that the socket did not take for the next, which may be
// there already.
func (s *Session) unsent(m message) {
	if m.worth == passing || m.ofConnection() {
		return
	}
	s.mu.Lock()
	s.queue.back(m)
	s.mu.Unlock()
	s.nudge()
}

// unready forgets what the connection told that another takes the place of.
func (s *Session) unready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.unready()
}

// attach makes c the socket of the session, in place of the one before.
func (s *Session) attach(c *conn) {
	s.mu.Lock()
	before := s.on
	s.on, c.secret = c, s.resume
	if s.gone != nil {
		s.gone.Stop()
		s.gone = nil
	}
	state := s.state
	s.mu.Unlock()
	if before != nil {
		before.close()
	}
	if state != "" {
		s.tell(message{passing, stateMessage{"event", "state", state}})
	}
}

// detach begins the patience with a browser whose socket is gone.
func (s *Session) detach(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on != c {
		return
	}
	s.on = nil
	if !s.over {
		s.gone = time.AfterFunc(s.server.resumeWithin(), func() { _ = s.Leg.Hangup(media.MediaTimeout) })
	}
}
