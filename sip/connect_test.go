package sip

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/resolver"
	"github.com/parley-voice/parley/sip/siptest"
)

func overTCP(at string) string { return "sip:" + at + ";transport=tcp" }

// newUnreachableProxy returns a proxy that answers no SYN: the backlog of its listener is
// full.
func newUnreachableProxy(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err = syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 10 {
		c, err := (&net.Dialer{Timeout: 200 * time.Millisecond}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			return overTCP(at)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the backlog does not fill")
	return ""
}

// TestConnectTimeout checks that connecting is bounded by the target and the caller.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	proxy := newUnreachableProxy(t)
	for name, row := range map[string]struct {
		ringTime, ctx time.Duration
		cause         media.Cause
		least, most   time.Duration
	}{
		"short ring timeout": {300 * time.Millisecond, 20 * time.Second, media.RouteError, 300 * time.Millisecond, 2 * time.Second},
		"short context":      {20 * time.Second, 300 * time.Millisecond, media.Canceled, 300 * time.Millisecond, 2 * time.Second},
		"both long":          {20 * time.Second, 20 * time.Second, media.RouteError, 3 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newEnv(t, nil)
			target := l.target()
			target.Trunk.Proxy, target.RingTimeout = proxy, row.ringTime
			ctx, cancel := context.WithTimeout(t.Context(), row.ctx)
			defer cancel()
			start := time.Now()
			failure := l.dialError(t, ctx, target, nil)
			if d := time.Since(start); failure.Cause != row.cause || failure.Err == nil || d < row.least || d > row.most {
				t.Errorf("got %v after %v", failure, d)
			}
			start = time.Now()
			if err := l.ua.Close(shortContext(t)); err != nil || time.Since(start) > 3*time.Second {
				t.Errorf("Close took %v: %v", time.Since(start), err)
			}
		})
	}
}

// dialInBackground dials in the background and reports when the request is sent.
func (l *env) dialInBackground(ctx context.Context, target media.Target) (failed <-chan error, sent <-chan struct{}) {
	outcome, began := make(chan error, 1), make(chan struct{})
	go func() {
		_, err := l.ua.Dial(ctx, target, func(p media.Progress) {
			if p == media.Sent {
				close(began)
			}
		})
		outcome <- err
	}()
	return outcome, began
}

func causeOf(err error) media.Cause {
	if failure, ok := errors.AsType[*media.DialError](err); ok {
		return failure.Cause
	}
	return ""
}

// TestConcurrentConnects checks that several attempts wait for one connection. Canceling the
// first does not cancel the others.
func TestConcurrentConnects(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	target := l.target()
	target.Trunk.Proxy = newUnreachableProxy(t)
	target.RingTimeout = 1500 * time.Millisecond
	start := time.Now()
	first, sent := l.dialInBackground(t.Context(), target)
	<-sent
	target.ID += "-second"
	target.RingTimeout = 2500 * time.Millisecond
	second, sent := l.dialInBackground(t.Context(), target)
	<-sent
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	target.ID += "-third"
	third, _ := l.dialInBackground(ctx, target)
	if err := <-third; causeOf(err) != media.Canceled || len(first) > 0 {
		t.Errorf("the canceled attempt got %v after %v", err, time.Since(start))
	}
	if err := <-first; causeOf(err) != media.RouteError || len(second) > 0 {
		t.Errorf("the first attempt got %v after %v", err, time.Since(start))
	}
	if err := <-second; causeOf(err) != media.RouteError || time.Since(start) < target.RingTimeout {
		t.Errorf("the second attempt got %v after %v", err, time.Since(start))
	}
}

func TestCloseWhileConnecting(t *testing.T) {
	l := newEnv(t, nil)
	target := l.target()
	target.Trunk.Proxy = newUnreachableProxy(t)
	failed, sent := l.dialInBackground(t.Context(), target)
	<-sent
	start := time.Now()
	if err := l.ua.Close(shortContext(t)); err != nil {
		t.Error(err)
	}
	if err := <-failed; causeOf(err) != media.Canceled || time.Since(start) > 3*time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
}

func TestCloseWhileResolving(t *testing.T) {
	lookups := make(chan struct{}, 10)
	l := newEnvWith(t, &UA{Resolver: &resolver.DNS{Net: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case lookups <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}}}, nil)
	target := l.target()
	target.Trunk.Proxy = "sip:trunk.example;transport=udp"
	failed, sent := l.dialInBackground(t.Context(), target)
	<-lookups
	start := time.Now()
	if err := l.ua.Close(shortContext(t)); err != nil {
		t.Error(err)
	}
	if err := <-failed; causeOf(err) != media.Canceled || time.Since(start) > 3*time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	select {
	case <-sent:
		t.Error("a request was sent")
	default:
	}
}

// TestCloseDuringBye closes the user agent while a BYE waits for a connection to
// the Contact.
func TestCloseDuringBye(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	contact := newUnreachableProxy(t)
	s := newOutsidePeer(t, l)
	target := l.target()
	target.Trunk.Proxy = "sip:" + s.conn.LocalAddr().String() + ";transport=udp"
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		buf := make([]byte, 65536)
		_ = s.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = s.conn.WriteTo([]byte(answerTo(string(buf[:n]), contact[len("sip:"):])), from)
	})
	dialed, _ := l.dialInBackground(t.Context(), target)
	wg.Wait()
	waitFor(t, func() bool { connected, _ := l.ua.Calls(); return connected > 0 }, func() string { return "the call was not answered" })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := l.ua.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
		t.Errorf("Close took %v: %v", time.Since(start), err)
	}
	if err := <-dialed; err == nil {
		t.Error("a call without an ACK was returned")
	}
}

// TestConnectionOutlivesRingTimeout checks that the ringing timeout does not affect an established connection.
func TestConnectionOutlivesRingTimeout(t *testing.T) {
	t.Parallel()
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{After: 100 * time.Millisecond, Status: 200}
	})
	for range 2 { // the second call uses the same connection
		target := l.target()
		target.Trunk.Proxy = overTCP(l.carrier.Addr().String())
		leg := l.call(t, target)
		if _, err := toneLevel(leg, 5, 440); err != nil {
			t.Error(err)
		}
		_ = leg.Hangup(media.LocalHangup)
		e := l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
		if e.Transport != "TCP" {
			t.Errorf("went over %s", e.Transport)
		}
	}
}

// newStuckProxy returns a proxy that stops reading after the first bytes, and headers
// that exceed all buffers.
func newStuckProxy(t *testing.T) (proxy string, headers map[string]string, begun <-chan struct{}) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		if _, err := io.ReadFull(c, make([]byte, 10)); err == nil {
			close(first)
		}
		<-done
	})
	t.Cleanup(func() {
		_ = ln.Close()
		close(done)
		wg.Wait()
	})
	headers = map[string]string{}
	for n := range 40000 {
		headers["X-"+strconv.Itoa(n)] = strings.Repeat("x", 500)
	}
	return overTCP(ln.Addr().String()), headers, first
}

// TestTrunkDoesNotRead dials a trunk that accepts a connection and reads nothing.
func TestTrunkDoesNotRead(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	target := l.target()
	target.Trunk.Proxy, target.Headers, _ = newStuckProxy(t)
	start := time.Now()
	failure := l.dialError(t, t.Context(), target, nil)
	if d := time.Since(start); failure.Cause != media.RouteError || d < 3*time.Second || d > 9*time.Second {
		t.Errorf("got %v after %v", failure, d)
	}
}

// TestCloseDuringWrite closes while a request is partly written.
func TestCloseDuringWrite(t *testing.T) {
	l := newEnv(t, nil)
	target := l.target()
	proxy, headers, begun := newStuckProxy(t)
	target.Trunk.Proxy, target.Headers = proxy, headers
	failed, _ := l.dialInBackground(t.Context(), target)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := l.ua.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*time.Second {
		t.Errorf("Close took %v: %v", time.Since(start), err)
	}
	if err := <-failed; causeOf(err) != media.Canceled {
		t.Errorf("got %v", err)
	}
}
