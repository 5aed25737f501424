package api_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/api"
)

// A pipe is an in-memory listener for one client.
type pipe struct {
	server chan net.Conn
	over   chan struct{}
	once   sync.Once
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.server:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.TCPAddr{} }

// serve starts a server with one client in the bubble of the test.
func serve(t *testing.T, h http.HandlerFunc) net.Conn {
	t.Helper()
	client, far := net.Pipe()
	l := &pipe{server: make(chan net.Conn, 1), over: make(chan struct{})}
	l.server <- far
	s := &http.Server{Handler: api.WithWriteDeadline(h), ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = client.Close()
		_ = s.Close()
		serving.Wait()
	})
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return client
}

const bodySize = 1 << 20

// TestStalledReaderIsDisconnected checks that a client that stops reading loses its connection.
func TestStalledReaderIsDisconnected(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter) error{
		"a large answer": func(w http.ResponseWriter) error {
			_, err := w.Write(make([]byte, bodySize))
			return err
		},
		"a stream": func(w http.ResponseWriter) error {
			for range bodySize >> 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return err
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result := make(chan error, 1)
				client := serve(t, func(w http.ResponseWriter, _ *http.Request) { result <- write(w) })
				if _, err := io.ReadFull(client, make([]byte, 100_000)); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err := <-result
				if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took < 29*time.Second || took > time.Minute {
					t.Errorf("after %v: %v", took, err)
				}
				rest, err := io.Copy(io.Discard, client)
				if err != nil || rest > 100_000 {
					t.Errorf("the connection stays open: %d more bytes, %v", rest, err)
				}
			})
		})
	}
}

// TestUnreadBufferedResponse checks that the deadline also applies to bytes that are written after the handler returns.
func TestUnreadBufferedResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "short") // written when the handler returns
		})
		<-time.After(time.Minute)
		if got, err := io.ReadAll(client); err != nil || len(got) > 0 {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestSlowReaderGetsAll reads 8 KiB every 5 s for eleven minutes.
func TestSlowReaderGetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 1)
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, bodySize))
			result <- err
		})
		for range bodySize >> 13 {
			<-time.After(5 * time.Second)
			if _, err := io.ReadFull(client, make([]byte, 1<<13)); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// TestWholeResponseHasDeadline checks that a deadline that the handler sets also ends the last writes of a reader that reads
// slowly, or not at all.
func TestWholeResponseHasDeadline(t *testing.T) {
	for name, pause := range map[string]time.Duration{"a slow reader": 5 * time.Second, "no reader": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result := make(chan error, 1)
				began := time.Now()
				client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(40 * time.Second))
					<-time.After(20 * time.Second)
					_, err := w.Write(make([]byte, bodySize))
					result <- err
				})
				over := make(chan struct{})
				defer close(over)
				go func() {
					for {
						select {
						case <-over:
							return
						case <-time.After(pause):
						}
						if _, err := io.ReadFull(client, make([]byte, 1<<13)); err != nil {
							return
						}
					}
				}()
				err := <-result
				if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took != 40*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// TestQuietStreamContinues checks that a stream may be quiet for longer than the deadline of a write.
func TestQuietStreamContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 1)
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				<-time.After(5 * time.Minute)
				_, err := io.WriteString(w, "data: x\n\n")
				if err == nil {
					err = http.NewResponseController(w).Flush()
				}
				if err != nil {
					result <- err
					return
				}
			}
			result <- nil
		})
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}
