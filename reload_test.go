package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestReload sends SIGHUP to a server with a live call: the call continues, new TLS connections get the new
// certificate, and the log has the new level. An invalid file changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	var up, over atomic.Bool
	s := newProcess(t, carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: http.StatusOK, Talk: func(ctx context.Context, _ media.Leg) {
			up.Store(true)
			<-ctx.Done() // until the remote side hangs up
			over.Store(true)
		}}
	}}).Addr().String())
	dir := t.TempDir()
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, key := pemPair(t)
	write("cert", first)
	write("key", key)
	write("settings", []byte("PARLEY_LOG_LEVEL=info\n"))
	at := "127.0.0.1:" + freePort(t)
	s.environ = append(slices.DeleteFunc(s.environ, func(e string) bool { return strings.HasPrefix(e, "PARLEY_LOG_LEVEL") }),
		"PARLEY_SIP_TLS_ADDR="+at, "PARLEY_SIP_TLS_CERT="+dir+"/cert", "PARLEY_SIP_TLS_KEY="+dir+"/key")
	cmd := s.serve("--config", dir+"/settings")
	s.ready()
	var placed demo.Call
	if err := s.api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": demo.Number}, &placed); err != nil {
		t.Fatal(err)
	}
	soon(t, "the call is on", up.Load)
	shown := func() []byte { return shownBy(t, at) }
	before := shown()

	write("cert", []byte("junk"))
	s.hangUp(cmd)
	s.logs("failed to reload")
	if got := shown(); !slices.Equal(got, before) {
		t.Error("a file that cannot be read changed the certificate")
	}

	second, key := pemPair(t)
	write("cert", second)
	write("key", key)
	write("settings", []byte("PARLEY_LOG_LEVEL=debug\n"))
	s.hangUp(cmd)
	s.logs("level=DEBUG")
	if got := shown(); slices.Equal(got, before) {
		t.Error("the certificate is still the first one")
	}
	if over.Load() {
		t.Error("the call ended")
	}
	if err := s.api.Do(t.Context(), http.MethodPost, "/v1/calls/"+placed.CallID+"/end", nil, &placed); err != nil {
		t.Fatal(err)
	}
	soon(t, "the call is over", over.Load)
	s.end(cmd)
}

// newProcess prepares a database for a server that runs as a child process, with a trunk to proxy.
func newProcess(t *testing.T, proxy string) *soak {
	t.Helper()
	s := &soak{t: t, hooks: map[string]map[string]bool{}}
	s.furnish(proxy, "http://127.0.0.1:9")
	return s
}

// hangUp sends SIGHUP.
func (s *soak) hangUp(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
}

// logs waits for a log line with the text.
func (s *soak) logs(text string) {
	s.t.Helper()
	soon(s.t, "the log says "+text, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.log, func(line string) bool { return strings.Contains(line, text) })
	})
}

// shownBy returns the certificate that a TLS server presents to a new connection.
func shownBy(t *testing.T, addr string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // the test looks at the certificate itself
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw //nolint:forcetypeassert // a tls.Dialer's
}
