package grpcstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// serve starts a server of unencrypted HTTP/2. It returns a client and the address of a method.
func serve(t *testing.T, h http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: h, Protocols: protocols, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-done
	})
	return &http.Client{Transport: transport}, "http://" + l.Addr().String() + "/package.Service/Method"
}

func finish(w http.ResponseWriter, code, text string) {
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", code)
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", text)
}

// TestBothWays checks that client and server can send messages alternately within one call.
func TestBothWays(t *testing.T) {
	client, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Te") != "trailers" || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Authorization") != "Api-Key k" {
			t.Errorf("headers %v", r.Header)
		}
		for {
			b, err := ReadMessage(r.Body)
			if err != nil {
				finish(w, "0", "")
				return
			}
			_, _ = w.Write(AppendMessage(nil, append([]byte("re: "), b...)))
			_ = http.NewResponseController(w).Flush()
		}
	})
	s, err := Open(t.Context(), client, address, http.Header{"Authorization": {"Api-Key k"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "", strings.Repeat("x", 100_000)} {
		if err := s.Send([]byte(text), time.Second); err != nil {
			t.Fatal(err)
		}
		if b, err := s.Receive(); err != nil || string(b) != "re: "+text {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	s.CloseSend()
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if err := s.Send(nil, time.Second); !errors.Is(err, ErrClosed) {
		t.Errorf("send after the end: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusals checks the errors of refused calls. A refusal comes in trailers, in the headers of a
// response without messages, or as an HTTP error.
func TestRefusals(t *testing.T) {
	const secret = "Api-Key canary-secret"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		text   string
	}{
		"trailers only": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Status", "16")
			w.Header().Set("Grpc-Message", "key canary-secret: is%20wrong")
		}, http.StatusUnauthorized, "key [redacted]: is wrong"},
		"trailers": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			finish(w, "3", "unknown model")
		}, http.StatusBadRequest, "unknown model"},
		"HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"too many"}`, http.StatusTooManyRequests)
		}, http.StatusTooManyRequests, "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			client, address := serve(t, c.answer)
			s, err := Call(t.Context(), client, address, http.Header{"Authorization": {secret}}, []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			var refused *pipeline.RefusedError
			if _, err := s.Receive(); !errors.As(err, &refused) || refused.Status != c.status || refused.Text != c.text {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestBrokenResponses(t *testing.T) {
	for name, write := range map[string][]byte{
		"no status": AppendMessage(nil, nil), "cut": {0, 0, 0, 0, 9, 1}, "compressed": {1, 0, 0, 0, 0}, "huge": {0, 255, 0, 0, 0},
	} {
		client, address := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(write) })
		s, err := Call(t.Context(), client, address, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = s.Receive()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.Close()
	}
}

// TestNoConnection checks that ctx ends the opening, and that the error does not contain the
// address.
func TestNoConnection(t *testing.T) {
	hang := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, hang, "http://host/x?key=canary", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	refuse := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("refused")
	}}}
	if _, err := Open(t.Context(), refuse, "http://host/x?key=canary", nil); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
}

// TestStuckServer checks that a server that reads nothing delays Send only up to the limit, and does not
// delay Close.
func TestStuckServer(t *testing.T) {
	client, address := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s, err := Open(t.Context(), client, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 64<<10)
	for err = nil; err == nil; {
		err = s.Send(message, 20*time.Millisecond)
	}
	if !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	began := time.Now()
	_ = s.Close()
	if d := time.Since(began); d > time.Second {
		t.Errorf("closing took %v", d)
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 7})
	f.Add([]byte{0, 0xff, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadMessage(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, AppendMessage(nil, m)) {
			t.Errorf("%x read as %x", b, m)
		}
	})
}
