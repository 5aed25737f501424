package endpoints

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// A path is a connection that can silently stop transmitting.
type path struct {
	net.Conn
	dark atomic.Bool
}

func (p *path) Write(b []byte) (int, error) {
	if p.dark.Load() {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

// TestHalfOpen checks that a silent HTTP/2 connection is replaced.
func TestHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := fakeprovider.NewNet()
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto)
		}))
		_ = srv.Listener.Close()
		srv.Listener, srv.EnableHTTP2 = n, true
		srv.StartTLS()
		var paths []*path
		client := newClient(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := n.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			paths = append(paths, &path{Conn: c})
			return paths[len(paths)-1], nil
		}, nil)
		transport, ok := client.Transport.(*http.Transport)
		trusting, ok2 := srv.Client().Transport.(*http.Transport)
		if !ok || !ok2 {
			t.Fatal("want transports")
		}
		transport.TLSClientConfig = trusting.TLSClientConfig
		ask := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				return ""
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				return ""
			}
			return string(b)
		}
		if got := ask(); got != "HTTP/2.0" {
			t.Fatalf("answered by %q", got)
		}
		paths[0].dark.Store(true)
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			if ask() != "" {
				t.Fatal("got a response over the silent connection")
			}
		}
		if got := ask(); got != "HTTP/2.0" || len(paths) != 2 {
			t.Errorf("then: %q over %d connections", got, len(paths))
		}
		client.CloseIdleConnections()
		for _, p := range paths {
			_ = p.Close()
		}
		srv.Close()
	})
}

// TestRedirects checks that a provider cannot send a request, with its key and the words of
// the caller, to another host.
func TestRedirects(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/near":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	client := newClient(new(net.Dialer).DialContext, nil)
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/away": http.StatusTemporaryRedirect, "/near": 0} {
		ask := pipeline.JSONClient{URL: srv.URL + path, Client: client, Header: http.Header{"X-Api-Key": {"canary"}}}
		body, err := ask.Body(t.Context(), "words")
		var refused *pipeline.RefusedError
		if errors.As(err, &refused); (refused == nil) != (want == 0) || refused != nil && refused.Status != want {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			_ = body.Close()
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("another host received the request")
	}
}
