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

// TestReload sends SIGHUP to a server with a live call. The call must continue, new TLS connections must get the new
// certificate, and the log must have the new level. An invalid file must change nothing.
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
	dir, write := fileWriter(t)
	first, key := newCertificate(t)
	write("cert", first)
	write("key", key)
	write("settings", []byte("PARLEY_LOG_LEVEL=info\n"))
	at := "127.0.0.1:" + freePort(t)
	s.environ = append(slices.DeleteFunc(s.environ, func(e string) bool { return strings.HasPrefix(e, "PARLEY_LOG_LEVEL") }),
		"PARLEY_SIP_TLS_ADDR="+at, "PARLEY_SIP_TLS_CERT="+dir+"/cert", "PARLEY_SIP_TLS_KEY="+dir+"/key")
	cmd := s.serve("--config", dir+"/settings")
	s.waitReady()
	id := requestCall(t, s.api, demo.Number)
	eventually(t, "the call is active", up.Load)
	certificate := func() []byte { return peerCertificate(t, at) }
	before := certificate()

	write("cert", []byte("junk"))
	s.sendSIGHUP(cmd)
	s.waitLog("failed to reload")
	if got := certificate(); !slices.Equal(got, before) {
		t.Error("a file that cannot be read changed the certificate")
	}

	second, key := newCertificate(t)
	write("cert", second)
	write("key", key)
	write("settings", []byte("PARLEY_LOG_LEVEL=debug\n"))
	s.sendSIGHUP(cmd)
	s.waitLog("level=DEBUG")
	if got := certificate(); slices.Equal(got, before) {
		t.Error("the certificate is still the first one")
	}
	if over.Load() {
		t.Error("the call ended")
	}
	post(t, s.api, "/v1/calls/"+id+"/end", nil, new(any))
	eventually(t, "the call has ended", over.Load)
	s.end(cmd)
}

// fileWriter returns a folder, and a function that writes files in it.
func fileWriter(t *testing.T) (dir string, write func(name string, text []byte)) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// newProcess prepares a database, with a trunk to proxy, for a server that runs as a child process.
func newProcess(t *testing.T, proxy string) *soak {
	t.Helper()
	s := &soak{t: t, hooks: map[string]map[string]bool{}}
	s.prepare(proxy, "http://127.0.0.1:9")
	return s
}

func (s *soak) sendSIGHUP(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
}

func (s *soak) waitLog(text string) {
	s.t.Helper()
	eventually(s.t, "the log says "+text, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.log, func(line string) bool { return strings.Contains(line, text) })
	})
}

// peerCertificate returns the certificate that a TLS server presents to a new connection.
func peerCertificate(t *testing.T, addr string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // the test compares the certificate itself
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw //nolint:forcetypeassert // a tls.Dialer's
}
