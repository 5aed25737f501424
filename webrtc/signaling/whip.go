package signaling

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
)

// WHIPPath is the path of the WHIP endpoint (RFC 9725). Session URLs are below it.
const WHIPPath = "/rtc/whip"

const (
	sdpType      = "application/sdp"
	fragmentType = "application/trickle-ice-sdpfrag"
)

type whip struct {
	session *Session
	token   [32]byte // hash of the token with which the session was created
	etag    string   // ETag of the current ICE session; guarded by Server.mu
}

// ServeWHIP serves WHIPPath and the URLs below it.
func (s *Server) ServeWHIP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*") // access needs a token, not a cookie
	h.Set("Access-Control-Expose-Headers", "Location, Link, ETag")
	h.Set("Cache-Control", "no-store")
	id, below := strings.CutPrefix(r.URL.Path, WHIPPath+"/")
	switch {
	case r.Method == http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "POST, PATCH, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match")
		h.Set("Accept-Post", sdpType)
		w.WriteHeader(http.StatusNoContent)
	case !below && r.Method == http.MethodPost:
		s.offerWHIP(w, r)
	case below && r.Method == http.MethodPatch:
		s.patchWHIP(w, r, id)
	case below && r.Method == http.MethodDelete:
		if x := s.findWHIP(w, r, id); x != nil {
			_ = x.session.Leg.Hangup(media.RemoteHangup)
			w.WriteHeader(http.StatusOK)
		}
	default:
		h.Set("Allow", "POST, OPTIONS")
		if below {
			h.Set("Allow", "PATCH, DELETE, OPTIONS")
		}
		refuseHTTP(w, http.StatusMethodNotAllowed, &RefusedError{BadMessage, "accepted: POST " + WHIPPath + "; PATCH and DELETE at a session"})
	}
}

func (s *Server) offerWHIP(w http.ResponseWriter, r *http.Request) {
	offer, ok := s.readBody(w, r, sdpType)
	if !ok {
		return
	}
	if !s.beginRequest() {
		refuseHTTP(w, http.StatusServiceUnavailable, errClosed)
		return
	}
	defer s.tasks.Done()
	joinToken := bearerToken(r)
	session, answer, err := s.begin(context.WithoutCancel(r.Context()), request{Token: joinToken, SDP: offer}, nil)
	if err != nil {
		why := refusalFor(err)
		refuseHTTP(w, statusOf(why.Code), why)
		return
	}
	x, id := &whip{session, sha256.Sum256([]byte(joinToken)), newTag()}, randomID()
	s.storeWHIP(id, x)
	h := w.Header()
	h.Set("Content-Type", sdpType)
	h.Set("Location", WHIPPath+"/"+id)
	h.Set("ETag", x.etag)
	for _, server := range session.credentials {
		for _, url := range server.URLs {
			h.Add("Link", link(url, server))
		}
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer) // a client that left needs no answer
}

// link returns the Link header value for an ICE server (RFC 9725 section 4.6).
func link(url string, s ice.Server) string {
	l := "<" + url + `>; rel="ice-server"`
	if s.Username != "" {
		l += fmt.Sprintf(`; username="%s"; credential="%s"; credential-type="password"`, s.Username, s.Credential)
	}
	return l
}

func (s *Server) patchWHIP(w http.ResponseWriter, r *http.Request, id string) {
	x := s.findWHIP(w, r, id)
	if x == nil {
		return
	}
	fragment, ok := s.readBody(w, r, fragmentType)
	if !ok {
		return
	}
	s.mu.Lock()
	tag, match := x.etag, r.Header.Get("If-Match")
	s.mu.Unlock()
	if match == "" {
		refuseHTTP(w, http.StatusPreconditionRequired, &RefusedError{BadMessage, "If-Match: accepted: the ETag of the session, or * to restart"})
		return
	}
	if match != "*" && match != tag {
		refuseHTTP(w, http.StatusPreconditionFailed, &RefusedError{BadMessage, "If-Match: the ETag changed with an ICE restart"})
		return
	}
	answer, err := x.session.Leg.ApplyFragment(r.Context(), fragment)
	if err != nil {
		why := refusalFor(err)
		refuseHTTP(w, statusOf(why.Code), why)
		return
	}
	if answer == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.mu.Lock()
	x.etag = newTag()
	w.Header().Set("ETag", x.etag)
	s.mu.Unlock()
	w.Header().Set("Content-Type", fragmentType)
	_, _ = io.WriteString(w, answer) // a client that left needs no answer
}

func newTag() string { return `"` + randomID() + `"` }

// beginRequest registers a request for which Close waits. It returns false after Close was called.
func (s *Server) beginRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.tasks.Add(1)
	}
	return !s.closed
}

func (s *Server) storeWHIP(id string, x *whip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	if x.session.ended {
		return
	}
	if s.whips == nil {
		s.whips = map[string]*whip{}
	}
	s.whips[id] = x
}

func (s *Server) findWHIP(w http.ResponseWriter, r *http.Request, id string) *whip {
	s.mu.Lock()
	x := s.whips[id]
	s.mu.Unlock()
	if x == nil {
		refuseHTTP(w, http.StatusNotFound, &RefusedError{CallEnded, "no such session; its call may have ended"})
		return nil
	}
	hash := sha256.Sum256([]byte(bearerToken(r)))
	if subtle.ConstantTimeCompare(hash[:], x.token[:]) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuseHTTP(w, http.StatusUnauthorized, &RefusedError{WrongCall, "send the token of the session as a bearer (RFC 9725)"})
		return nil
	}
	return x
}

func bearerToken(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// readBody reads a body of the content type kind. If it returns false, it has sent an error response.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, kind string) (string, bool) {
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != kind {
		refuseHTTP(w, http.StatusUnsupportedMediaType, &RefusedError{BadMessage, "Content-Type: accepted: " + kind})
		return "", false
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessageLen))
	if err != nil {
		refuseHTTP(w, http.StatusRequestEntityTooLarge, &RefusedError{BadMessage, "the body is longer than 64 KiB"})
		return "", false
	}
	return string(text), true
}

func statusOf(c Code) int {
	switch c {
	case TokenInvalid, TokenExpired, TokenUsed, WrongCall:
		return http.StatusUnauthorized
	case CallEnded:
		return http.StatusGone
	case SDPInvalid, BadMessage:
		return http.StatusBadRequest
	case ResumeUnknown, TooMany, JoinTimeout, Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusServiceUnavailable
	}
}

func refuseHTTP(w http.ResponseWriter, status int, why *RefusedError) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := map[string]any{"error": map[string]any{"code": why.Code, "message": why.Message}}
	_ = json.NewEncoder(w).Encode(body) // a client that left needs no answer
}
