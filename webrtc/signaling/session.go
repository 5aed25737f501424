package signaling

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// A Session is a web call, with its media and the messages to its browser. It continues when the browser connects with
// a new socket. Its methods may be called from any goroutine and never wait for the browser.
type Session struct {
	CallID string
	Leg    *leg.Leg
	// MaxDuration is the maximum duration of the call. Calls.Begin sets it. TURN credentials expire some time later;
	// for them, 0 means 2 h.
	MaxDuration time.Duration

	texts       chan string // words that the user typed and the conversation has not read
	server      *Server
	socket      bool         // false for WHIP: the session has no socket and ends with its media
	credentials []ice.Server // ICE servers for the browser, sent with each answer

	resuming sync.Mutex // held while a socket resumes the session

	mu          sync.Mutex
	queue       queue
	wake        chan struct{}
	conn        *conn // nil without a socket
	resumeTimer *time.Timer
	resume      string // current secret
	previous    string // secret that was last used; valid until the browser has received the current one
	ended       bool
	state       string
	textDue     time.Time // end of the intervals that the texts so far have used
}

// Texts returns the words that the user types.
func (s *Session) Texts() <-chan string { return s.texts }

const (
	maxTexts = 16 // maximum number of texts that wait for the conversation
	// A session may send textBurst texts at once, and one more for each textInterval. Each text costs a request to the model.
	textBurst    = 8
	textInterval = time.Second
)

// addText passes a text to the conversation. If texts come too fast or too many wait, it refuses, and the browser must
// connect again.
func (s *Session) addText(text string) error {
	if !s.mayText(time.Now()) {
		return &RefusedError{TooMany, "too many texts in a short time; join again"}
	}
	select {
	case s.texts <- text:
		return nil
	default:
		return &RefusedError{TooMany, "too many texts wait for the agent; join again"}
	}
}

// mayText counts a text, and reports whether it is within the limit.
func (s *Session) mayText(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.textDue
	if due.Before(now) {
		due = now
	}
	if due = due.Add(textInterval); due.Sub(now) > textBurst*textInterval {
		return false
	}
	s.textDue = due
	return true
}

// State sends the state of the conversation.
func (s *Session) State(state string) {
	s.mu.Lock()
	s.state = state
	s.mu.Unlock()
	s.enqueue(message{ephemeral, stateMessage{"event", "state", state}})
}

// Transcript sends words of role, "caller" or "agent". If final is false, the words may still change.
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

// enqueue queues a message. If the queue is full of essential messages, it closes the socket; the browser may resume.
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

// requeue keeps a message that could not be sent for the next socket. It drops messages that will be out of date.
func (s *Session) requeue(m message) {
	if m.priority == ephemeral || m.isConnectionScoped() {
		return
	}
	s.mu.Lock()
	s.queue.pushFront(m)
	s.mu.Unlock()
	s.wakeWriter()
}

// dropReady removes messages that are valid only for the previous peer connection.
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

// detach removes the socket c, which has closed, and starts ResumeTimeout. It does nothing if the session has a newer
// socket.
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
