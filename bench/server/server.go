// Package server runs "parley serve" as a child process with its own settings and, by default,
// its own database. It uses the server only over HTTP.
package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Server is a "parley serve" process. Set the fields from Child to Log before Start. Start sets the others.
type Server struct {
	// Child returns a command that runs this program.
	Child func(ctx context.Context, args ...string) *exec.Cmd
	// Database is a Postgres URL; empty lets the server run its own.
	Database string
	Settings []string // additional KEY=VALUE settings
	Log      io.Writer

	URL, Metrics, Key string
	PID               int
	dir               string
	client            *http.Client
	stop              func()
}

// Start starts the server and waits until it is ready. Call Stop even after an
// error.
func (s *Server) Start(ctx context.Context) (err error) {
	s.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConns: 4096, MaxIdleConnsPerHost: 4096}}
	if s.dir, err = os.MkdirTemp("", "parley-bench-"); err != nil {
		return err
	}
	if err = os.Chmod(s.dir, 0o711); err != nil { //nolint:gosec // Postgres runs as another user
		return err
	}
	if s.URL, err = free(ctx); err != nil {
		return err
	}
	if s.Metrics, err = free(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

func (s *Server) serve(ctx context.Context) error {
	cmd := s.child(ctx, "serve")
	cmd.Stdout, cmd.Stderr = s.Log, s.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // the kernel ends the child when this thread ends
		failed := cmd.Start()
		started <- failed
		if failed == nil {
			_ = cmd.Wait() // the exit status does not matter
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.PID = cmd.Process.Pid
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the server may have ended
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-over
		late.Stop()
	})
	late := time.After(time.Minute)
	for {
		if s.Request(ctx, http.MethodGet, "/readyz", nil, &struct{}{}) == nil {
			return nil
		}
		select {
		case <-over:
			return errors.New("parley serve ended")
		case <-late:
			return errors.New("parley serve is not ready")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop stops the server and removes its data. It may be called twice.
func (s *Server) Stop() error {
	if s.stop != nil {
		s.stop()
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// free returns the URL of a loopback port that is currently free.
func free(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return "http://" + l.Addr().String(), l.Close()
}

// child returns a command for this program. Its environment has only the variables of Child and
// the settings of the server.
func (s *Server) child(ctx context.Context, args ...string) *exec.Cmd {
	cmd := s.Child(ctx, args...)
	cmd.Env = append(append(cmd.Env,
		"PATH="+os.Getenv("PATH"), "HOME="+s.dir, "PARLEY_DATA_DIR="+s.data(), "PARLEY_DATABASE_URL="+s.Database,
		"PARLEY_HTTP_ADDR="+strings.TrimPrefix(s.URL, "http://"), "PARLEY_METRICS_ADDR="+strings.TrimPrefix(s.Metrics, "http://"),
		"PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0", "PARLEY_RATE_LIMIT=off", "PARLEY_DIAL_QUEUE_DEPTH=1000000",
		"PARLEY_LOG_LEVEL=warn", "PARLEY_DRAIN_TIMEOUT=0s",
	), s.Settings...)
	return cmd
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// DatabaseURL returns the URL of the server's database.
func (s *Server) DatabaseURL() string {
	if s.Database != "" {
		return s.Database
	}
	return fmt.Sprintf("host=%s port=5432 user=parley dbname=parley sslmode=disable", filepath.Join(s.data(), "postgres", "socket"))
}

// Configure applies an operator's file and creates the API key of org that Request uses.
func (s *Server) Configure(ctx context.Context, org, file string) error {
	name := filepath.Join(s.dir, "bench.yaml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		return err
	}
	if _, err := s.command(ctx, "apply", "-f", name); err != nil {
		return err
	}
	secret, err := s.command(ctx, "key", "create", "--org", org, "--rate-limit", "off")
	s.Key = strings.TrimSpace(secret)
	return err
}

// command runs this program and returns its output.
func (s *Server) command(ctx context.Context, args ...string) (string, error) {
	cmd := s.child(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("parley %s: %w: %s", args[0], err, errs.String())
	}
	return out.String(), nil
}

// Request calls the API and decodes the response. It returns an error unless the status is a success.
func (s *Server) Request(ctx context.Context, method, path string, body, answer any) error {
	return s.ask(ctx, method, path, "", body, answer)
}

// Post is like Request, with method POST and a new Idempotency-Key.
func (s *Server) Post(ctx context.Context, path string, body, answer any) error {
	return s.ask(ctx, http.MethodPost, path, rand.Text(), body, answer)
}

func (s *Server) ask(ctx context.Context, method, path, key string, body, answer any) error {
	var text io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = bytes.NewReader(doc)
	}
	got, err := s.do(ctx, method, s.URL+path, key, text)
	if err != nil {
		return err
	}
	return json.Unmarshal(got, answer)
}

// ReadMetrics reads a page of the metrics address, such as /debug/pprof/heap?debug=1.
func (s *Server) ReadMetrics(ctx context.Context, path string) ([]byte, error) {
	return s.do(ctx, http.MethodGet, s.Metrics+path, "", nil)
}

func (s *Server) do(ctx context.Context, method, url, key string, body io.Reader) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.Key)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // the body has been read
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, got)
	}
	return got, nil
}
