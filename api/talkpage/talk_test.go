package talkpage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// calls returns a ticket or an error.
type calls struct {
	err    error
	agents []string
}

func (c *calls) Call(_ context.Context, agent string) (map[string]any, error) {
	c.agents = append(c.agents, agent)
	return map[string]any{"access_token": "t"}, c.err
}

func page(t *testing.T, c *calls) http.Handler {
	t.Helper()
	h, err := (&Page{Agents: []string{"demo", "<b>shop"}, Caller: c, PublicURL: "https://calls.example"}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func requestToken(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "http://calls.example/talk/token", strings.NewReader(body))
	r.RemoteAddr = "192.0.2.1:4711"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestToken(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		headers []string
		err     error
		status  int
		code    string
	}{
		"our page":                               {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 201, ""},
		"our page in an older browser":           {`{"agent":"demo"}`, []string{"Origin", "https://calls.example"}, nil, 201, ""},
		"another site's page of the same domain": {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-site"}, nil, 403, "cross_origin"},
		"another site's page":                    {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://calls.example"}, nil, 403, "cross_origin"},
		"another site in an older browser":       {`{"agent":"demo"}`, []string{"Origin", "https://elsewhere.example"}, nil, 403, "cross_origin"},
		"a form without a script":                {`{"agent":"demo"}`, []string{"Origin", "null"}, nil, 403, "cross_origin"},
		"no origin":                              {`{"agent":"demo"}`, nil, nil, 403, "cross_origin"},
		"an agent that is not offered":           {`{"agent":"sales"}`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 404, "agent_not_found"},
		"no JSON":                                {`agent=demo`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 422, "invalid_request"},
		"too long":                               {`{"agent":"demo","x":"` + strings.Repeat("x", maxBody) + `"}`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 422, "invalid_request"},
		"full":                                   {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-origin"}, &RefusedError{503, "full", "later", 1500 * time.Millisecond}, 503, "full"},
		"internal error":                         {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-origin"}, errors.New("password canary"), 500, "internal_error"},
	} {
		w := requestToken(page(t, &calls{err: c.err}), c.body, c.headers...)
		var got struct {
			Code  string `json:"code"`
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != c.status || got.Code != c.code || (got.Token == "t") != (c.status == 201) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "canary") || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v %s", name, w.Header(), w.Body)
		}
		if c.code == "full" && w.Header().Get("Retry-After") != "2" {
			t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
		}
	}
}

// hung is a Caller whose database does not respond.
type hung struct{}

func (hung) Call(ctx context.Context, _ string) (map[string]any, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("calls: %w", ctx.Err())
}

func TestTokenTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := (&Page{Agents: []string{"demo"}, Caller: hung{}}).Handler()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w := requestToken(h, `{"agent":"demo"}`, "Sec-Fetch-Site", "same-origin")
		if took := time.Since(began); w.Code != 503 || took != createTimeout || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s after %v", w.Code, w.Body, took)
		}
	})
}

func TestTokenRateLimit(t *testing.T) {
	c := &calls{}
	h := page(t, c)
	for range perAddress {
		if w := requestToken(h, `{"agent":"demo"}`, "Sec-Fetch-Site", "same-origin"); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := requestToken(h, `{"agent":"demo"}`, "Sec-Fetch-Site", "same-origin")
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || len(c.agents) != perAddress {
		t.Errorf("%d %v, %d calls", w.Code, w.Header(), len(c.agents))
	}
}

func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1_700_000_000, 0)
	addr := netip.MustParseAddr
	for i := range perAddress {
		if _, ok := l.allow(addr("2001:db8::1"), now); !ok {
			t.Fatalf("call %d of an address is rejected", i+1)
		}
	}
	if wait, ok := l.allow(addr("2001:db8::ffff:2"), now.Add(20*time.Second)); ok || wait != 40*time.Second {
		t.Errorf("another address of the same /64: %v %v", wait, ok)
	}
	if _, ok := l.allow(addr("2001:db8:0:1::1"), now); !ok {
		t.Error("another network is rejected")
	}
	for range perAddress {
		if _, ok := l.allow(addr("192.0.2.1"), now); !ok {
			t.Fatal("rejected below the limit")
		}
	}
	if _, ok := l.allow(addr("::ffff:192.0.2.1"), now); ok {
		t.Error("an IPv4-mapped address has its own share")
	}
	allowed := 2*perAddress + 1
	for i := byte(1); i < 255; i++ {
		if _, ok := l.allow(netip.AddrFrom4([4]byte{10, 0, 0, i}), now); ok {
			allowed++
		}
	}
	if allowed != perMinute {
		t.Errorf("%d calls allowed in a minute, want %d", allowed, perMinute)
	}
	if _, ok := l.allow(addr("192.0.2.1"), now.Add(time.Minute)); !ok {
		t.Error("rejected after the window")
	}
}

func TestPage(t *testing.T) {
	h := page(t, &calls{})
	for path, kind := range map[string]string{
		"/talk": "text/html; charset=utf-8", "/talk/talk.js": "text/javascript; charset=utf-8", "/talk/talk.css": "text/css; charset=utf-8", "/talk/icon.svg": "image/svg+xml",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != 200 || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		policy := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'self'", "frame-ancestors 'none'", "connect-src 'self' wss://calls.example"} {
			if !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: the policy is %q, want %q in it", path, policy, want)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		r.Header.Set("If-None-Match", w.Header().Get("Etag"))
		again := httptest.NewRecorder()
		if h.ServeHTTP(again, r); again.Code != http.StatusNotModified {
			t.Errorf("%s: conditional request: %d", path, again.Code)
		}
		if path == "/talk" && (!strings.Contains(w.Body.String(), "<option>&lt;b&gt;shop</option>") || strings.Contains(w.Body.String(), "style=")) {
			t.Errorf("the page is %s", w.Body)
		}
	}
	typed, err := (&Page{Agents: []string{"demo"}, Notice: "No <b>ears</b>.", Typed: true}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	text := httptest.NewRecorder()
	typed.ServeHTTP(text, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/talk", http.NoBody))
	for _, want := range []string{"<p>No &lt;b&gt;ears&lt;/b&gt;.</p>", " checked disabled> Without a microphone"} {
		if !strings.Contains(text.Body.String(), want) {
			t.Errorf("%q is missing in %s", want, text.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/talk/limit.go", http.NoBody))
	if w.Code != 404 {
		t.Errorf("an unknown file: %d", w.Code)
	}
}
