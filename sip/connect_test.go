package sip

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/locate"
	"github.com/parley-voice/parley/sip/siptest"
)

// overTCP is an address as a proxy.
func overTCP(at string) string { return "sip:" + at + ";transport=tcp" }

// swallow is the proxy of a trunk that answers no SYN: a listener that nobody
// accepts from, whose backlog is full.
func swallow(t *testing.T) string {
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

// TestConnecting dials a trunk that takes no connection: the attempt is bounded
// by what the target and the caller allow, whatever the trunk does.
func TestConnecting(t *testing.T) {
	t.Parallel()
	proxy := swallow(t)
	for name, row := range map[string]struct {
		ringFor, ctx time.Duration
		cause        media.Cause
		least, most  time.Duration
	}{
		"rings for less":  {300 * time.Millisecond, 20 * time.Second, media.RouteError, 300 * time.Millisecond, 2 * time.Second},
		"context is less": {20 * time.Second, 300 * time.Millisecond, media.Cancelled, 300 * time.Millisecond, 2 * time.Second},
		"both are long":   {20 * time.Second, 20 * time.Second, media.RouteError, 3 * time.Second, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, nil)
			target := l.target()
			target.Trunk.Proxy, target.RingFor = proxy, row.ringFor
			ctx, cancel := context.WithTimeout(t.Context(), row.ctx)
			defer cancel()
			start := time.Now()
			failure := l.dialError(t, ctx, target, nil)
			if d := time.Since(start); failure.Cause != row.cause || failure.Err == nil || d < row.least || d > row.most {
				t.Errorf("got %v after %v", failure, d)
			}
			start = time.Now()
			if err := l.ua.Close(soon(t)); err != nil || time.Since(start) > time.Second {
				t.Errorf("Close took %v: %v", time.Since(start), err)
			}
		})
	}
}

// dialling dials in the background, and tells when the request was to leave.
func (l *line) dialling(ctx context.Context, target media.Target) (failed <-chan error, sent <-chan struct{}) {
	outcome, told := make(chan error, 1), make(chan struct{})
	go func() {
		_, err := l.ua.Dial(ctx, target, func(p media.Progress) {
			if p == media.Sent {
				close(told)
			}
		})
		outcome <- err
	}()
	return outcome, told
}

func causeOf(err error) media.Cause {
	if failure, ok := errors.AsType[*media.DialError](err); ok {
		return failure.Cause
	}
	return ""
}

// TestConnectingTogether has attempts wait for one connection. The end of the
// one that began it is not that of the others.
func TestConnectingTogether(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	target := l.target()
	target.Trunk.Proxy = swallow(t)
	target.RingFor = 1500 * time.Millisecond
	start := time.Now()
	first, sent := l.dialling(t.Context(), target)
	<-sent
	target.ID += "-second"
	target.RingFor = 2500 * time.Millisecond
	second, sent := l.dialling(t.Context(), target)
	<-sent
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	target.ID += "-third"
	third, _ := l.dialling(ctx, target)
	if err := <-third; causeOf(err) != media.Cancelled || len(first) > 0 {
		t.Errorf("who gave up first got %v after %v", err, time.Since(start))
	}
	if err := <-first; causeOf(err) != media.RouteError || len(second) > 0 {
		t.Errorf("who began got %v after %v", err, time.Since(start))
	}
	if err := <-second; causeOf(err) != media.RouteError || time.Since(start) < target.RingFor {
		t.Errorf("who waits longest got %v after %v", err, time.Since(start))
	}
}

// TestCloseWhileConnecting closes while a call waits for its trunk.
func TestCloseWhileConnecting(t *testing.T) {
	l := newLine(t, nil)
	target := l.target()
	target.Trunk.Proxy = swallow(t)
	failed, sent := l.dialling(t.Context(), target)
	<-sent
	start := time.Now()
	if err := l.ua.Close(soon(t)); err != nil {
		t.Error(err)
	}
	if err := <-failed; causeOf(err) != media.Cancelled || time.Since(start) > time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
}

// TestCloseWhileResolving closes while a trunk's name is looked for.
func TestCloseWhileResolving(t *testing.T) {
	asked := make(chan struct{}, 10)
	l := newLineWith(t, &UA{Resolver: &locate.DNS{Net: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}}}, nil)
	target := l.target()
	target.Trunk.Proxy = "sip:trunk.example;transport=udp"
	failed, sent := l.dialling(t.Context(), target)
	<-asked
	start := time.Now()
	if err := l.ua.Close(soon(t)); err != nil {
		t.Error(err)
	}
	if err := <-failed; causeOf(err) != media.Cancelled || time.Since(start) > time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	select {
	case <-sent:
		t.Error("a request left")
	default:
	}
}

// TestByeWhileConnecting closes while the BYE of a call waits for its peer,
// whose answer gave a Contact that takes no connection.
func TestByeWhileConnecting(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	contact := swallow(t)
	s := newStranger(t, l)
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
	dialled, _ := l.dialling(t.Context(), target)
	wg.Wait()
	deadline := time.Now().Add(5 * time.Second)
	for up, _ := l.ua.Calls(); up == 0; up, _ = l.ua.Calls() {
		if time.Now().After(deadline) {
			t.Fatal("the call does not come up")
		}
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := l.ua.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
		t.Errorf("Close took %v: %v", time.Since(start), err)
	}
	if err := <-dialled; err == nil {
		t.Error("a call that could not be acknowledged was handed out")
	}
}

// TestConnected dials over TCP with a short time to ring: what bounds the
// connecting bounds nothing after it.
func TestConnected(t *testing.T) {
	t.Parallel()
	l := newLine(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{After: 100 * time.Millisecond, Status: 200}
	})
	for range 2 { // the second goes over the connection of the first
		target := l.target()
		target.Trunk.Proxy = overTCP(l.carrier.Addr().String())
		leg, err := l.ua.Dial(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hear(leg, 5, 440); err != nil {
			t.Error(err)
		}
		_ = leg.Hangup(media.LocalHangup)
		e := l.last(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
		if e.Transport != "TCP" {
			t.Errorf("went over %s", e.Transport)
		}
	}
}

// unread is the proxy of a trunk that reads the first bytes of a request and no
// more, and headers that make a request longer than all buffers on its way.
func unread(t *testing.T) (proxy string, headers map[string]string, begun <-chan struct{}) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		if _, err := io.ReadFull(c, make([]byte, 10)); err == nil {
			close(first)
		}
		<-over
	})
	t.Cleanup(func() {
		_ = ln.Close()
		close(over)
		wg.Wait()
	})
	headers = map[string]string{}
	for n := range 40000 {
		headers["X-"+strconv.Itoa(n)] = strings.Repeat("x", 500)
	}
	return overTCP(ln.Addr().String()), headers, first
}

// TestUnread dials a trunk that takes a connection and then reads nothing.
func TestUnread(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	target := l.target()
	target.Trunk.Proxy, target.Headers, _ = unread(t)
	start := time.Now()
	failure := l.dialError(t, t.Context(), target, nil)
	if d := time.Since(start); failure.Cause != media.RouteError || d < 3*time.Second || d > 9*time.Second {
		t.Errorf("got %v after %v", failure, d)
	}
}

// TestCloseWhileUnread closes while a request is half written.
func TestCloseWhileUnread(t *testing.T) {
	l := newLine(t, nil)
	target := l.target()
	proxy, headers, begun := unread(t)
	target.Trunk.Proxy, target.Headers = proxy, headers
	failed, _ := l.dialling(t.Context(), target)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := l.ua.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*time.Second {
		t.Errorf("Close took %v: %v", time.Since(start), err)
	}
	if err := <-failed; causeOf(err) != media.Cancelled {
		t.Errorf("got %v", err)
	}
}
