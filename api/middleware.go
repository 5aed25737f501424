package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/budget"
)

type keyOf struct{}

type handler func(w http.ResponseWriter, r *http.Request) error

type methods map[string]handler

// byMethod dispatches by method. A path without methods is 404.
func (s *Server) byMethod(by methods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := by[r.Method]
		if !ok && r.Method == http.MethodHead {
			h, ok = by[http.MethodGet]
		}
		switch {
		case len(by) == 0:
			response.Error(w, r, s.Log, &response.PlainError{Status: http.StatusNotFound, Message: "path not found"})
		case !ok:
			w.Header().Set("Allow", allow(by))
			response.Error(w, r, s.Log, &response.PlainError{Status: http.StatusMethodNotAllowed, Message: "use " + allow(by)})
		default:
			if err := h(w, r); err != nil {
				response.Error(w, r, s.Log, err)
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

// logLevel returns the level of a request's log line. Successful health checks are many and say nothing.
func logLevel(route string, status int) slog.Level {
	if (route == "/healthz" || route == "/readyz") && status == http.StatusOK {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// wrap adds to all requests: a request ID, recovery from panics, a log line, and for /v1 the
// API key and rate limit.
func (s *Server) wrap(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := control.NewID("req_", began)
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		rec := &recorder{ResponseWriter: w}
		_, route := mux.Handler(r)
		defer func() { //nolint:contextcheck // the request carries it
			if p := recover(); p != nil {
				s.onPanic(rec, r, id, p)
			}
			s.Log.Log(r.Context(), logLevel(route, rec.status), "request",
				"id", id, "method", r.Method, "route", route, "status", rec.status, "took", time.Since(began))
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
				response.Error(rec, r, s.Log, err)
				return
			}
			r = admitted
			body := s.withBudget(r)
			defer body.Release()
			r.Body = body
		}
		// Paths must match exactly. The mux would redirect those that it can clean.
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path {
			response.Error(rec, r, s.Log, &response.PlainError{Status: http.StatusNotFound, Message: "path not found"})
			return
		}
		mux.ServeHTTP(rec, r)
	})
}

// withBudget reserves budget for a request body while it is read. A form's file goes to disk,
// so only the parts before it count.
func (s *Server) withBudget(r *http.Request) *budget.Body {
	key, _ := r.Context().Value(keyOf{}).(apikeys.Key)
	most := int64(schema.MaxCampaign)
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		most = schema.MaxBody
	}
	return s.Budget.Body(r.Body, key.OrgID, r.ContentLength, most)
}

func (s *Server) timeout(method, route string) time.Duration {
	t := s.Timeout
	if t == 0 {
		t = 10 * time.Second
	}
	switch {
	case route == EndRoute:
		t += s.Calls.EndTimeout()
	case route == listRoute && method == http.MethodPost:
		t *= listShare
	}
	return t
}

func underV1(p string) bool { return p == "/v1" || strings.HasPrefix(p, "/v1/") }

func (s *Server) onPanic(w *recorder, r *http.Request, id string, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return
	}
	s.Log.ErrorContext(r.Context(), "panic", "id", id, "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.status == 0 {
		response.Error(w, r, s.Log, errors.New("panic"))
	}
}

// admit authenticates a request and applies the rate limit.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return nil, control.Refuse(control.CodeKeyRequired, "send exactly one Authorization header")
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
		w.Header().Set("X-Ratelimit-Reset", response.Unix(quota.Reset))
	}
	if !ok {
		return nil, &control.Error{
			Code: control.CodeKeyRateLimit, RetryAfter: apikeys.Window,
			Message: fmt.Sprintf("this API key has sent its %d requests of a minute: repeat the request in %.0f seconds",
				quota.Limit, apikeys.Window.Seconds()),
		}
	}
	return r.WithContext(context.WithValue(r.Context(), keyOf{}, key)), nil
}

// limit returns the requests per minute of a key; 0 means no limit.
func (s *Server) limit(key apikeys.Key) int {
	switch {
	case s.RateLimit == apikeys.RateOff || key.RateLimit == apikeys.RateOff:
		return 0
	case key.RateLimit > 0:
		return key.RateLimit
	case s.RateLimit > 0:
		return s.RateLimit
	default:
		return 60
	}
}

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

// Unwrap supports http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
