// Package talkpage serves the page /talk for calls from a browser and issues their join
// tokens, so that no API key reaches a browser.
package talkpage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
)

//go:embed page
var files embed.FS

const (
	maxBody       = 4 << 10          // bytes of the body
	createTimeout = 10 * time.Second // time limit for creating a call
)

// A Caller creates calls of visitors.
type Caller interface {
	// Call creates a call with an agent and returns the join data. The visitor sees only errors
	// that are *RefusedError.
	Call(ctx context.Context, agent string) (ticket map[string]any, err error)
}

// A RefusedError is shown to the visitor.
type RefusedError struct {
	Status        int // HTTP status
	Code, Message string
	RetryAfter    time.Duration // 0 means that the header is not sent
}

// Error implements error.
func (r *RefusedError) Error() string { return r.Code + ": " + r.Message }

// A Page serves /talk. Its fields are set once.
type Page struct {
	// Agents are the names of the agents that visitors may choose.
	Agents []string
	// Notice is shown above the controls; may be empty.
	Notice string
	// Typed means that the agents recognize no speech: visitors type, and no microphone is opened.
	Typed  bool
	Caller Caller
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
	Log       *slog.Logger

	limit limiter
}

// Handler serves GET /talk, its files, and POST /talk/token.
func (p *Page) Handler() (http.Handler, error) {
	index, err := template.ParseFS(files, "page/index.html")
	if err != nil {
		return nil, fmt.Errorf("talk: %w", err)
	}
	var page bytes.Buffer
	if err = index.Execute(&page, p); err != nil {
		return nil, fmt.Errorf("talk: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /talk", p.file(page.Bytes(), "text/html; charset=utf-8"))
	for name, kind := range map[string]string{
		"talk.js":  "text/javascript; charset=utf-8",
		"talk.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		body, err := files.ReadFile("page/" + name)
		if err != nil {
			return nil, fmt.Errorf("talk: %w", err)
		}
		mux.Handle("GET /talk/"+name, p.file(body, kind))
	}
	mux.HandleFunc("POST /talk/token", p.token)
	return mux, nil
}

// file serves a file of the page. The policy allows the page's own files, the signaling socket
// and the microphone, and forbids frames (clickjacking).
func (p *Page) file(body []byte, kind string) http.Handler {
	policy := "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'"
	if u, err := url.Parse(p.PublicURL); err == nil && u.Host != "" {
		policy += " ws" + strings.TrimPrefix(u.Scheme, "http") + "://" + u.Host
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", policy)
		h.Set("Permissions-Policy", "microphone=(self), speaker-selection=(self)")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		h.Set("Etag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}

// token answers POST /talk/token, {"agent": NAME}, with the join data of a new call.
func (p *Page) token(w http.ResponseWriter, r *http.Request) {
	ticket, err := p.createCall(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err == nil {
		writeJSON(w, http.StatusCreated, ticket)
		return
	}
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok {
		p.logFailure(r.Context(), err)
		refused = &RefusedError{
			Status:  http.StatusInternalServerError,
			Code:    "internal_error",
			Message: "could not start the call; try again shortly",
		}
	}
	if refused.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refused.RetryAfter.Seconds()))))
	}
	writeJSON(w, refused.Status, map[string]string{"code": refused.Code, "message": refused.Message})
}

func (p *Page) logFailure(ctx context.Context, err error) {
	if p.Log != nil {
		p.Log.ErrorContext(ctx, "failed to start a call for a visitor", "err", err)
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the visitor may have left
}

func (p *Page) createCall(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	if !sameOrigin(r) {
		return nil, &RefusedError{
			Status:  http.StatusForbidden,
			Code:    "cross_origin",
			Message: "only the page /talk of this server may request calls",
		}
	}
	var order struct {
		Agent string `json:"agent"`
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || json.Unmarshal(text, &order) != nil {
		return nil, &RefusedError{
			Status:  http.StatusUnprocessableEntity,
			Code:    "invalid_request",
			Message: `the body is not an object of JSON; accepted: {"agent": NAME}`,
		}
	}
	if !slices.Contains(p.Agents, order.Agent) {
		return nil, &RefusedError{Status: http.StatusNotFound, Code: "agent_not_found", Message: "this agent is not available on this page"}
	}
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // requests without an address share one limit
	if wait, ok := p.limit.allow(from.Addr(), time.Now()); !ok {
		return nil, &RefusedError{
			http.StatusTooManyRequests, "rate_limit_exceeded",
			"too many calls from your network; try again in a minute", wait,
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), createTimeout)
	defer cancel()
	ticket, err := p.Caller.Call(ctx, order.Agent)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.logFailure(r.Context(), err)
		return nil, &RefusedError{
			http.StatusServiceUnavailable, string(control.CodeVoiceBackend),
			"could not start the call in time; try again shortly", 5 * time.Second,
		}
	}
	return ticket, err
}

// sameOrigin reports whether a browser sent the request from this page. Other clients can forge
// this, but only within the limits.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && u.Host == r.Host
}
