package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
)

// keyOf is where a request's key is in its context.
type keyOf struct{}

// A handler answers, or returns the error to be answered.
type handler func(w http.ResponseWriter, r *http.Request) error

// methods are the handlers of one path.
type methods map[string]handler

// open serves a path by the request's method. No methods at all is no path.
func (s *Server) open(by methods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := by[r.Method]
		if !ok && r.Method == http.MethodHead {
			h, ok = by[http.MethodGet]
		}
		switch {
		case len(by) == 0:
			respond.Error(w, r, s.Log, &respond.PlainError{Status: http.StatusNotFound, Message: "no such path"})
		case !ok:
			w.Header().Set("Allow", allow(by))
			respond.Error(w, r, s.Log, &respond.PlainError{Status: http.StatusMethodNotAllowed, Message: "use " + allow(by)})
		default:
			if err := h(w, r); err != nil {
				respond.Error(w, r, s.Log, err)
			}
		}
	})
}

func allow(by methods) string {
	var all []string
	for m := range by {
		all = append(all, m)
		if m == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// outer is around every request: its id, its panics, its log line, and for
// /v1 its key and rate.
func (s *Server) outer(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := control.NewID("req_", began)
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		rec := &recorder{ResponseWriter: w}
		_, route := mux.Handler(r)
		defer func() { //nolint:contextcheck // the request carries it
			if p := recover(); p != nil {
				s.panicked(rec, r, id, p)
			}
			s.Log.InfoContext(r.Context(), "request", "id", id, "method", r.Method, "route", route, "status", rec.status, "took", time.Since(began))
			if s.Observe != nil {
				s.Observe(route, r.Method, rec.status, time.Since(began))
			}
		}()
		if underV1(r.URL.Path) {
			w.Header().Set("Cache-Control", "no-store")
			ctx, cancel := context.WithTimeout(r.Context(), s.timeout(r.Method, route))
			defer cancel()
			r = r.WithContext(ctx)
			admitted, err := s.admit(rec, r)
			if err != nil {
				respond.Error(rec, r, s.Log, err)
				return
			}
			r = admitted
		}
		// Paths match exactly; the mux would redirect the ones it can clean.
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path {
			respond.Error(rec, r, s.Log, &respond.PlainError{Status: http.StatusNotFound, Message: "no such path"})
			return
		}
		mux.ServeHTTP(rec, r)
	})
}

// timeout is how long a request of a route may take.
func (s *Server) timeout(method, route string) time.Duration {
	t := s.Timeout
	if t == 0 {
		t = 10 * time.Second
	}
	switch {
	case route == EndRoute:
		t += s.Calls.Patience()
	case route == listRoute && method == http.MethodPost:
		t *= listShare
	}
	return t
}

func underV1(p string) bool { return p == "/v1" || strings.HasPrefix(p, "/v1/") }

func (s *Server) panicked(w *recorder, r *http.Request, id string, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return
	}
	s.Log.ErrorContext(r.Context(), "panic", "id", id, "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status == 0 {
		respond.Error(w, r, s.Log, errors.New("panic"))
	}
}

// admit authenticates a request, counts it, and gives it its key.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return nil, control.Refuse(control.CodeKeyRequired, "send one Authorization header")
	}
	key, err := s.Keys.Authenticate(r.Context(), r.Header.Get("Authorization"))
	if err != nil {
		return nil, err
	}
	quota, ok, err := s.Limiter.Admit(r.Context(), key.ID, s.limit(key))
	if err != nil {
		return nil, err
	}
	if quota.Limit > 0 {
		w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(quota.Limit))
		w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(quota.Remaining))
		w.Header().Set("X-Ratelimit-Reset", respond.Unix(quota.Reset))
	}
	if !ok {
		return nil, &control.Error{
			Code: control.CodeKeyRateLimit, Message: "too many requests of this API key in 60 seconds", RetryAfter: access.Window,
		}
	}
	return r.WithContext(context.WithValue(r.Context(), keyOf{}, key)), nil
}

// limit is the requests a minute of a key, 0 for no limit.
func (s *Server) limit(key access.Key) int {
	switch {
	case s.RateLimit == access.RateOff || key.RateLimit == access.RateOff:
		return 0
	case key.RateLimit > 0:
		return key.RateLimit
	case s.RateLimit > 0:
		return s.RateLimit
	default:
		return 60
	}
}

// A recorder remembers the status that was answered.
type recorder struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
