package signaling

import (
	"errors"
	"maps"
	"time"
)

// A tokenUse is the state of a token until it expires. The token was used by session, or is refused with refusal. If
// both are nil, a join with the token is in progress.
type tokenUse struct {
	until   time.Time
	session *Session
	refusal *RefusedError
}

// reserveToken reserves a token for one join at a time. It returns an error if the token is reserved or known to be
// unusable. After the join, call recordToken.
func (s *Server) reserveToken(c Claims, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tokens, func(_ string, x tokenUse) bool { return !now.Before(x.until) })
	switch x, known := s.tokens[c.ID]; {
	case !known:
	case x.refusal != nil:
		return x.refusal
	case x.session == nil:
		return &RefusedError{Unavailable, "the call is being joined; try again"}
	case x.session.hasEnded():
		return &RefusedError{CallEnded, "the call has ended"}
	default:
		return &RefusedError{TokenUsed, "the token was already used"}
	}
	if s.tokens == nil {
		s.tokens = map[string]tokenUse{}
	}
	s.tokens[c.ID] = tokenUse{until: c.Expires}
	return nil
}

// recordToken stores the result of a join. It forgets a token that may still be usable.
func (s *Server) recordToken(c Claims, session *Session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, _ := errors.AsType[*RefusedError](err)
	if err != nil && (why == nil || why.Code != TokenUsed && why.Code != CallEnded) {
		delete(s.tokens, c.ID)
		return
	}
	s.tokens[c.ID] = tokenUse{c.Expires, session, why}
}
