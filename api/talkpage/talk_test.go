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

// calls gives out tickets, or an error.
type calls struct {
	err   error
	asked []string
}

func (c *calls) Call(_ context.Context, agent string) (map[string]any, error) {
	c.asked = append(c.asked, agent)
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

func ask(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
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
		"our page":                      {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 201, ""},
		"our page in an older browser":  {`{"agent":"demo"}`, []string{"Origin", "https://calls.example"}, nil, 201, ""},
		"a page of a neighbour":         {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-site"}, nil, 403, "cross_origin"},
		"a page of anybody":             {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://calls.example"}, nil, 403, "cross_origin"},
		"another in an older browser":   {`{"agent":"demo"}`, []string{"Origin", "https://elsewhere.example"}, nil, 403, "cross_origin"},
		"a form without a script":       {`{"agent":"demo"}`, []string{"Origin", "null"}, nil, 403, "cross_origin"},
		"nobody's":                      {`{"agent":"demo"}`, nil, nil, 403, "cross_origin"},
		"an agent that is not for them": {`{"agent":"sales"}`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 404, "agent_not_found"},
		"no JSON":                       {`agent=demo`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 422, "invalid_request"},
		"too long":                      {`{"agent":"demo","x":"` + strings.Repeat("x", longestOrder) + `"}`, []string{"Sec-Fetch-Site", "same-origin"}, nil, 422, "invalid_request"},
		"no room":                       {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-origin"}, &RefusedError{503, "full", "later", 1500 * time.Millisecond}, 503, "full"},
		"a fault of ours":               {`{"agent":"demo"}`, []string{"Sec-Fetch-Site", "same-origin"}, errors.New("password canary"), 500, "internal_error"},
	} {
		w := ask(page(t, &calls{err: c.err}), c.body, c.headers...)
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

// hung are calls that are ordered of a database which does not answer.
type hung struct{}

func (hung) Call(ctx context.Context, _ string) (map[string]any, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("calls: %w", ctx.Err())
}

// TestTokenInTime: a visitor gets an error in bounded time if no call is possible.
func TestTokenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := (&Page{Agents: []string{"demo"}, Caller: hung{}}).Handler()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w := ask(h, `{"agent":"demo"}`, "Sec-Fetch-Site", "same-origin")
		if took := time.Since(began); w.Code != 503 || took != orderWithin || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s after %v", w.Code, w.Body, took)
		}
	})
}

func TestTokensAreFew(t *testing.T) {
	c := &calls{}
	h := page(t, c)
	for range perAddress {
		if w := ask(h, `{"agent":"demo"}`, "Sec-Fetch-Site", "same-origin"); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := ask(h, `{"agent":"demo"}`, "Sec-Fetch-Site", "same-origin")
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || len(c.asked) != perAddress {
		t.Errorf("%d %v, %d calls", w.Code, w.Header(), len(c.asked))
	}
}

func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1_700_000_000, 0)
	addr := netip.MustParseAddr
	for i := range perAddress {
		if _, ok := l.allow(addr("2001:db8::1"), now); !ok {
			t.Fatalf("call %d of an address is refused", i+1)
		}
	}
	if wait, ok := l.allow(addr("2001:db8::ffff:2"), now.Add(20*time.Second)); ok || wait != 40*time.Second {
		t.Errorf("a neighbour in the same 64 bits: %v %v", wait, ok)
	}
	if _, ok := l.allow(addr("2001:db8:0:1::1"), now); !ok {
		t.Error("another network is refused")
	}
	for range perAddress {
		if _, ok := l.allow(addr("192.0.2.1"), now); !ok {
			t.Fatal("refused too soon")
		}
	}
	if _, ok := l.allow(addr("::ffff:192.0.2.1"), now); ok {
		t.Error("an address gets another share in another spelling")
	}
	given := 2*perAddress + 1
	for i := byte(1); i < 255; i++ {
		if _, ok := l.allow(netip.AddrFrom4([4]byte{10, 0, 0, i}), now); ok {
			given++
		}
	}
	if given != perMinute {
		t.Errorf("%d calls are begun in a minute, of %d", given, perMinute)
	}
	if _, ok := l.allow(addr("192.0.2.1"), now.Add(time.Minute)); !ok {
		t.Error("a minute later all is still refused")
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
			t.Errorf("%s: asked again it is %d", path, again.Code)
		}
		if path == "/talk" && (!strings.Contains(w.Body.String(), "<option>&lt;b&gt;shop</option>") || strings.Contains(w.Body.String(), "style=")) {
			t.Errorf("the page is %s", w.Body)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/talk/limit.go", http.NoBody))
	if w.Code != 404 {
		t.Errorf("what is no file of it: %d", w.Code)
	}
}
