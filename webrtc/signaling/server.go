// Package signaling lets browsers join their calls over a WebSocket or by WHIP (RFC 9725).
package signaling

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
)

// Calls starts calls. The browser receives an error of type *RefusedError, but no details of other errors.
type Calls interface {
	// Begin marks the token as used, sets s.MaxDuration and starts the call. It returns when the call has begun,
	// possibly before media flows. The call must call s.Bye when it ends.
	Begin(ctx context.Context, c Claims, s *Session) error
}

// A Server lets browsers join calls. Its fields must not change after the first use.
type Server struct {
	Calls     Calls
	Connector leg.Connector
	Clock     *mediaclock.Clock
	Key       TokenKey
	// Servers are the ICE servers for browsers.
	Servers ice.Servers
	Log     *slog.Logger
	// JoinTimeout is how long a socket may be open before it sends a join message; 0 means 10 s.
	JoinTimeout time.Duration
	// BeginTimeout limits the start of a call; 0 means 10 s.
	BeginTimeout time.Duration
	// ResumeTimeout is how long a call continues without a socket; 0 means 15 s.
	ResumeTimeout time.Duration
	// MaxHalfOpen is the maximum number of half-open sockets, which have not sent a join message; 0 means 256. A new
	// socket beyond the limit closes the oldest.
	MaxHalfOpen int
	// MediaTimeout is how long a call continues after ICE has detected the loss of the connection; 0 means 11 s. The
	// detection takes another 4 s.
	MediaTimeout time.Duration
	// ConsentTimeout is how long media is sent without answers to connectivity checks; 0 means 30 s.
	ConsentTimeout time.Duration

	mu       sync.Mutex
	closed   bool
	pending  []*conn // half-open sockets, oldest first
	open     map[*conn]bool
	sessions map[[32]byte]*Session // key: hash of the resume secret
	whips    map[string]*whip      // key: last part of the session URL
	tokens   map[string]tokenUse   // key: token ID
	tasks    sync.WaitGroup
}

var errClosed = &RefusedError{Unavailable, "the server is closing; join again"}

// maxHalfOpenPerNetwork is the maximum number of half-open sockets of one network (connlimit.Network).
const maxHalfOpenPerNetwork = 32

const (
	defaultMaxDuration = 2 * time.Hour // used if Begin sets no limit
	// credentialsGrace is how long TURN credentials stay valid after the maximum duration of the call.
	credentialsGrace = 5 * time.Minute
)

func (s *Server) joinTimeout() time.Duration   { return orElse(s.JoinTimeout, 10*time.Second) }
func (s *Server) beginTimeout() time.Duration  { return orElse(s.BeginTimeout, 10*time.Second) }
func (s *Server) resumeTimeout() time.Duration { return orElse(s.ResumeTimeout, 15*time.Second) }
func (s *Server) maxHalfOpen() int             { return orElse(s.MaxHalfOpen, 256) }

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

// Close closes all sockets and waits for their goroutines. Calls must have ended before.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.close()
	}
	s.mu.Unlock()
	s.tasks.Wait()
}

// Counts returns the numbers of half-open sockets and of calls.
func (s *Server) Counts() (half, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	each := map[*Session]bool{}
	for _, x := range s.sessions {
		each[x] = true
	}
	return len(s.pending), len(each) + len(s.whips)
}

func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.open == nil {
		s.open = map[*conn]bool{}
	}
	s.open[c] = true
	s.pending = append(s.pending, c)
	sameNetwork := func(other *conn) bool { return other.network == c.network }
	switch i := slices.IndexFunc(s.pending, sameNetwork); {
	case count(s.pending, sameNetwork) > maxHalfOpenPerNetwork:
		s.pending[i].close() // the oldest of its network
		s.pending = slices.Delete(s.pending, i, i+1)
	case len(s.pending) > s.maxHalfOpen():
		s.pending[0].close() // the oldest of all
		s.pending = slices.Delete(s.pending, 0, 1)
	}
	s.tasks.Add(1)
	return true
}

func count[T any](all []T, is func(T) bool) (n int) {
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}

func (s *Server) removePending(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.pending, c); i >= 0 {
		s.pending = slices.Delete(s.pending, i, i+1)
	}
}

func (s *Server) remove(c *conn) {
	s.removePending(c)
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.tasks.Done()
}

// begin starts the call of the token in r, and answers the offer. If c is nil (WHIP), the session has no socket and
// ends only with its media. The token remains usable if the offer cannot be answered.
func (s *Server) begin(ctx context.Context, r request, c *conn) (*Session, string, error) {
	claims, err := s.Key.Verify(r.Token, time.Now())
	switch {
	case errors.Is(err, ErrExpiredToken):
		return nil, "", &RefusedError{TokenExpired, "the token has expired; create a new call to get a new token"}
	case err != nil:
		return nil, "", &RefusedError{TokenInvalid, "the text is not a token of this server"}
	case r.CallID != "" && r.CallID != claims.CallID:
		return nil, "", &RefusedError{WrongCall, "the token belongs to another call"}
	}
	if err = s.reserveToken(claims, time.Now()); err != nil {
		return nil, "", err
	}
	if c != nil {
		s.removePending(c) // from now on BeginTimeout applies
	}
	session, answer, err := s.answer(ctx, claims, r.SDP, c != nil)
	s.recordToken(claims, session, err)
	return session, answer, err
}

func (s *Server) answer(ctx context.Context, claims Claims, offer string, socket bool) (*Session, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.beginTimeout())
	defer cancel()
	l := &leg.Leg{
		Connector:      s.Connector,
		Clock:          s.Clock,
		Log:            s.log().With("call", claims.CallID),
		LossTimeout:    s.MediaTimeout,
		ConsentTimeout: s.ConsentTimeout,
	}
	session := &Session{
		CallID: claims.CallID, Leg: l, server: s, socket: socket, texts: make(chan string, maxTexts), wake: make(chan struct{}, 1),
	}
	l.OnConnected = func() { session.enqueue(message{essential, readyMessage{"ready"}}) }
	if err := l.Open(); err != nil {
		return nil, "", err
	}
	answer, err := l.AnswerOffer(ctx, offer)
	if err == nil {
		err = s.Calls.Begin(ctx, claims, session)
	}
	if err != nil {
		return nil, "", errors.Join(err, l.Hangup("failure"))
	}
	session.credentials = s.Servers.ForCall(claims.CallID, time.Now().Add(orElse(session.MaxDuration, defaultMaxDuration)+credentialsGrace))
	s.renewSecret(session, "")
	return session, answer, nil
}

// renewSecret gives a session a new resume secret. by is the secret that was just used. It stays valid, because the
// browser may not receive the new one. A session that has ended, or has no socket, cannot be resumed.
func (s *Server) renewSecret(session *Session, by string) {
	secret := rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	session.mu.Lock()
	defer session.mu.Unlock()
	for _, other := range []string{session.previous, session.resume} {
		if other != by {
			delete(s.sessions, hashOf(other))
		}
	}
	session.previous, session.resume = by, secret
	if session.ended || !session.socket {
		return
	}
	if s.sessions == nil {
		s.sessions = map[[32]byte]*Session{}
	}
	s.sessions[hashOf(secret)] = session
}

// dropPreviousSecret makes the previous secret invalid. It is called when the browser has received the new secret on c.
func (s *Server) dropPreviousSecret(session *Session, c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.resume == c.secret && session.previous != "" {
		delete(s.sessions, hashOf(session.previous))
		session.previous = ""
	}
}

func (s *Server) find(secret string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[hashOf(secret)]
}

func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

func (s *Server) forget(session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.mu.Lock()
	delete(s.sessions, hashOf(session.resume))
	delete(s.sessions, hashOf(session.previous))
	session.mu.Unlock()
	for id, other := range s.whips {
		if other.session == session {
			delete(s.whips, id)
		}
	}
}

// resume continues a call on another socket, after a page reload or a broken socket.
func (s *Server) resume(ctx context.Context, r request, c *conn) (*Session, string, error) {
	unknown := &RefusedError{ResumeUnknown, "cannot resume: the call has ended or was already resumed"}
	session := s.find(r.Resume)
	if session == nil {
		return nil, "", unknown
	}
	s.removePending(c)
	session.resuming.Lock()
	defer session.resuming.Unlock()
	if s.find(r.Resume) == nil { // another socket was faster
		return nil, "", unknown
	}
	answer, err := session.Leg.AnswerOffer(ctx, r.SDP)
	if errors.Is(err, leg.ErrEnded) {
		return nil, "", &RefusedError{CallEnded, "the call has ended"}
	}
	if err != nil {
		return nil, "", err
	}
	session.dropReady()
	s.renewSecret(session, r.Resume)
	session.attach(c)
	return session, answer, nil
}

func refusalFor(err error) *RefusedError {
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return r
	}
	if o, ok := errors.AsType[*leg.OfferError](err); ok {
		return &RefusedError{SDPInvalid, o.Reason}
	}
	if errors.Is(err, leg.ErrEnded) {
		return &RefusedError{CallEnded, "the call has ended"}
	}
	return &RefusedError{Unavailable, "the call cannot be joined now; try again"}
}

func randomID() string {
	b := make([]byte, 18)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
