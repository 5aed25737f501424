package signalling

import (
	"errors"
	"maps"
	"time"

	"github.com/parley-voice/parley/webrtc/token"
)

// A spending is what became of a token, for as long as it could be shown again:
// nothing yet, a call, or why it never will be one.
type spending struct {
	until   time.Time
	session *Session
	why     *RefusedError
}

// spend takes a token to begin its call with, unless it is known to be of no use. One
// at a time begins with it; keep says what came of that.
func (s *Server) spend(c token.Claims, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.spent, func(_ string, x spending) bool { return !now.Before(x.until) })
	switch x, known := s.spent[c.ID]; {
	case !known:
	case x.why != nil:
		return x.why
	case x.session == nil:
		return &RefusedError{Unavailable, "the call is being joined; join again"}
	case x.session.isOver():
		return &RefusedError{CallEnded, "the call is over"}
	default:
		return &RefusedError{TokenUsed, "the token was used"}
	}
	if s.spent == nil {
		s.spent = map[string]spending{}
	}
	s.spent[c.ID] = spending{until: c.Expires}
	return nil
}

// keep remembers what came of a token. One that may be of use still is forgotten.
func (s *Server) keep(c token.Claims, session *Session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, _ := errors.AsType[*RefusedError](err)
	if err != nil && (why == nil || why.Code != TokenUsed && why.Code != CallEnded) {
		delete(s.spent, c.ID)
		return
	}
	s.spent[c.ID] = spending{c.Expires, session, why}
}
