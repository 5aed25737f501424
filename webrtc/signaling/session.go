package signaling

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// A Session is a web call with its media and the messages to its browser, on
// whichever socket is current. Its methods may be called from any goroutine
// and never wait for the browser.
type Session struct {
	CallID string
	Leg    *leg.Leg
	// MaxDuration is set by Calls.Begin.
	MaxDuration time.Duration

	server      *Server
	socket      bool         // false for WHIP: the session depends on media only
	credentials []ice.Server // for every ICE gathering of the browser

	resuming sync.Mutex // held while a socket resumes the session

	mu          sync.Mutex
	queue       queue
	wake        chan struct{}
	conn        *conn // nil without a socket
	resumeTimer *time.Timer
	resume      string // current secret
	previous    string // secret last used, valid until the browser has the current one
	ended       bool
	state       string
}

// State sends the state of the conversation.
func (s *Session) State(state string) {
	s.mu.Lock()
	s.state = state
	s.mu.Unlock()
	s.enqueue(message{ephemeral, stateMessage{"event", "state", state}})
}

// Transcript sends words; if not final they may still change.
func (s *Session) Transcript(role, text string, final bool, turn int) {
	w := ephemeral
	if final {
		w = finalWords
	}
	s.enqueue(message{w, transcriptMessage{"event", "transcript", role, text, final, turn}})
}

// Turn sends a turn as in GET /v1/calls/{id}/turns.
func (s *Session) Turn(item json.RawMessage) {
	s.enqueue(message{essential, turnMessage{"event", "turn", item}})
}

// Bye sends the reason for the end. It is the last message.
func (s *Session) Bye(reason string) {
	s.enqueue(message{essential, byeMessage{"bye", reason}})
	s.mu.Lock()
	s.ended = true
	if s.resumeTimer != nil {
		s.resumeTimer.Stop()
	}
	s.mu.Unlock()
	s.wakeWriter()
	s.server.forget(s)
}

// enqueue queues a message. If an essential message does not fit, the socket
// is closed; the browser may resume.
func (s *Session) enqueue(m message) {
	s.mu.Lock()
	if s.ended || !s.socket {
		s.mu.Unlock()
		return
	}
	ok, on := s.queue.push(m), s.conn
	s.mu.Unlock()
	if !ok && on != nil {
		on.close()
	}
	s.wakeWriter()
}

func (s *Session) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *Session) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Session) next() (m message, ok, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok = s.queue.pop()
	return m, ok, s.ended && len(s.queue.messages) == 0
}

// requeue keeps a message for the next socket, which may exist already.
func (s *Session) requeue(m message) {
	if m.priority == ephemeral || m.isConnectionScoped() {
		return
	}
	s.mu.Lock()
	s.queue.pushFront(m)
	s.mu.Unlock()
	s.wakeWriter()
}

// dropReady removes messages about the previous peer connection.
func (s *Session) dropReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.dropReady()
}

func (s *Session) attach(c *conn) {
	s.mu.Lock()
	before := s.conn
	s.conn, c.secret = c, s.resume
	if s.resumeTimer != nil {
		s.resumeTimer.Stop()
		s.resumeTimer = nil
	}
	state := s.state
	s.mu.Unlock()
	if before != nil {
		before.close()
	}
	if state != "" {
		s.enqueue(message{ephemeral, stateMessage{"event", "state", state}})
	}
}

// detach starts ResumeTimeout after the socket closed.
func (s *Session) detach(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	s.conn = nil
	if !s.ended {
		s.resumeTimer = time.AfterFunc(s.server.resumeTimeout(), func() { _ = s.Leg.Hangup(media.MediaTimeout) })
	}
}
