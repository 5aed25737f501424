// Package signalling is how browsers join their calls: over a WebSocket, or by
// WHIP (RFC 9725).
package signalling

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

	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/leg"
	"github.com/parley-voice/parley/webrtc/token"
)

// Calls begins calls. A *RefusedError is told to the browser; of any other the
// browser learns nothing.
type Calls interface {
	// Begin uses the token up and begins its call, whose media may flow later. It
	// sets how long the call may last and returns when it has begun; the session's Bye
	// is called when it is over.
	Begin(ctx context.Context, c token.Claims, s *Session) error
}

// A Server lets browsers in. Its fields are set once.
type Server struct {
	Calls     Calls
	Connector leg.Connector
	Clock     *pace.Clock
	Key       token.Key
	// Servers are those that browsers are told of.
	Servers ice.Servers
	Log     *slog.Logger
	// JoinWithin is how long a socket may be open without having joined; 0 means 10 s.
	JoinWithin time.Duration
	// BeginWithin is how long a call may take to begin; 0 means 10 s.
	BeginWithin time.Duration
	// ResumeWithin is how long a call lives without its socket; 0 means 15 s.
	ResumeWithin time.Duration
	// MostHalfOpen is how many sockets may be open without having joined; 0 means
	// 256. The one that waited longest gives way to a new one.
	MostHalfOpen int
	// MediaWithin is how long a call lives once it is known to have no
	// connectivity; 0 means 11 s, which makes 15 s of it.
	MediaWithin time.Duration
	// ConsentFor is how long a party is sent to that answers no checks; 0 means
	// 30 s.
	ConsentFor time.Duration

	mu       sync.Mutex
	closed   bool
	half     []*conn // oldest first
	open     map[*conn]bool
	sessions map[[32]byte]*Session // by the hashes of what they are resumed with
	whips    map[string]*whip      // by the end of their URL
	spent    map[string]spending   // by the id of a token
	tasks    sync.WaitGroup
}

// ErrClosed is returned once the server closes.
var errClosed = &RefusedError{Unavailable, "the server is closing; join again"}

// halfOpenEach is how many sockets of one network may be open without having joined.
const halfOpenEach = 32

const (
	longest = 2 * time.Hour // that a call lasts of which it is not said
	// credentialsGrace is how long TURN credentials outlive the longest that their
	// call may last.
	credentialsGrace = 5 * time.Minute
)

func (s *Server) joinWithin() time.Duration   { return orElse(s.JoinWithin, 10*time.Second) }
func (s *Server) beginWithin() time.Duration  { return orElse(s.BeginWithin, 10*time.Second) }
func (s *Server) resumeWithin() time.Duration { return orElse(s.ResumeWithin, 15*time.Second) }
func (s *Server) mostHalfOpen() int           { return orElse(s.MostHalfOpen, 256) }

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

// Close closes all sockets and returns when who served them is done. Calls are
// ended elsewhere, before.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.close()
	}
	s.mu.Unlock()
	s.tasks.Wait()
}

// Counts are the sockets that have not joined, and the calls.
func (s *Server) Counts() (half, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	each := map[*Session]bool{}
	for _, x := range s.sessions {
		each[x] = true
	}
	return len(s.half), len(each) + len(s.whips)
}

// admit takes a new socket in, among those that have not joined.
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
	s.half = append(s.half, c)
	ofIts := func(other *conn) bool { return other.from == c.from }
	switch i := slices.IndexFunc(s.half, ofIts); {
	case count(s.half, ofIts) > halfOpenEach:
		s.half[i].close() // of its network it had the most time
		s.half = slices.Delete(s.half, i, i+1)
	case len(s.half) > s.mostHalfOpen():
		s.half[0].close() // of all
		s.half = slices.Delete(s.half, 0, 1)
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

// joined takes a socket from among those that have not.
func (s *Server) joined(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.half, c); i >= 0 {
		s.half = slices.Delete(s.half, i, i+1)
	}
}

func (s *Server) left(c *conn) {
	s.joined(c)
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	s.tasks.Done()
}

// begin lets the holder of a token into its call, and answers its offer. The session
// lives by a socket that comes to be c's; by its media alone where there is none. The
// token is not used up by an offer that cannot be answered.
func (s *Server) begin(ctx context.Context, r request, c *conn) (*Session, string, error) {
	claims, err := s.Key.Read(r.Token, time.Now())
	switch {
	case errors.Is(err, token.ErrExpired):
		return nil, "", &RefusedError{TokenExpired, "the token has expired; a new call gives a new one"}
	case err != nil:
		return nil, "", &RefusedError{TokenInvalid, "the token is not one of this service"}
	case r.CallID != "" && r.CallID != claims.CallID:
		return nil, "", &RefusedError{WrongCall, "the token is of another call"}
	}
	if err = s.spend(claims, time.Now()); err != nil {
		return nil, "", err
	}
	if c != nil {
		s.joined(c) // it has all the time that its call takes to begin
	}
	session, answer, err := s.answer(ctx, claims, r.SDP, c != nil)
	s.keep(claims, session, err)
	return session, answer, err
}

// answer answers the offer of who holds a token, and begins the call.
func (s *Server) answer(ctx context.Context, claims token.Claims, offer string, socket bool) (*Session, string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.beginWithin())
	defer cancel()
	l := &leg.Leg{Connector: s.Connector, Clock: s.Clock, Log: s.log().With("call", claims.CallID), Patience: s.MediaWithin, Consent: s.ConsentFor}
	session := &Session{CallID: claims.CallID, Leg: l, server: s, socket: socket, wake: make(chan struct{}, 1)}
	l.Ready = func() { session.tell(message{lasting, readyMessage{"ready"}}) }
	if err := l.Open(); err != nil {
		return nil, "", err
	}
	answer, err := l.Offer(ctx, offer)
	if err == nil {
		err = s.Calls.Begin(ctx, claims, session)
	}
	if err != nil {
		return nil, "", errors.Join(err, l.Hangup("failure"))
	}
	session.credentials = s.Servers.For(claims.CallID, time.Now().Add(orElse(session.Longest, longest)+credentialsGrace))
	s.renew(session, "")
	return session, answer, nil
}

// renew gives a session a new secret to be resumed with, beside the one that it was
// resumed with now: the answer may not arrive. One that is over already has none.
func (s *Server) renew(session *Session, by string) {
	secret := rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	session.mu.Lock()
	defer session.mu.Unlock()
	for _, other := range []string{session.before, session.resume} {
		if other != by {
			delete(s.sessions, hashOf(other))
		}
	}
	session.before, session.resume = by, secret
	if session.over || !session.socket {
		return
	}
	if s.sessions == nil {
		s.sessions = map[[32]byte]*Session{}
	}
	s.sessions[hashOf(secret)] = session
}

// settle lets go of the secret before, once the browser is known to have the one
// that its socket was told.
func (s *Server) settle(session *Session, c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.resume == c.secret && session.before != "" {
		delete(s.sessions, hashOf(session.before))
		session.before = ""
	}
}

// find finds the session of a secret.
func (s *Server) find(secret string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[hashOf(secret)]
}

func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// forget lets go of a session that is over.
func (s *Server) forget(session *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.mu.Lock()
	delete(s.sessions, hashOf(session.resume))
	delete(s.sessions, hashOf(session.before))
	session.mu.Unlock()
	for id, other := range s.whips {
		if other.session == session {
			delete(s.whips, id)
		}
	}
}

// resume goes on over another socket with a call whose page was loaded anew, or
// whose socket broke.
func (s *Server) resume(ctx context.Context, r request, c *conn) (*Session, string, error) {
	gone := &RefusedError{ResumeGone, "no call can be resumed with this; it is over, or was resumed already"}
	session := s.find(r.Resume)
	if session == nil {
		return nil, "", gone
	}
	s.joined(c)
	session.resuming.Lock()
	defer session.resuming.Unlock()
	if s.find(r.Resume) == nil { // another was before us
		return nil, "", gone
	}
	answer, err := session.Leg.Offer(ctx, r.SDP)
	if errors.Is(err, leg.ErrOver) {
		return nil, "", &RefusedError{CallEnded, "the call is over"}
	}
	if err != nil {
		return nil, "", err
	}
	session.unready()
	s.renew(session, r.Resume)
	session.attach(c)
	return session, answer, nil
}

// told is what a browser learns of an error.
func told(err error) *RefusedError {
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return r
	}
	if o, ok := errors.AsType[*leg.OfferError](err); ok {
		return &RefusedError{SDPInvalid, o.What}
	}
	if errors.Is(err, leg.ErrOver) {
		return &RefusedError{CallEnded, "the call is over"}
	}
	return &RefusedError{Unavailable, "the call cannot be joined now"}
}

func randomID() string {
	b := make([]byte, 18)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
