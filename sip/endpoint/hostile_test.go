package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp/rtptest"
	"github.com/parley-voice/parley/sip"
	"github.com/parley-voice/parley/sip/siptest"
)

func newUA(t *testing.T) (*sip.UA, *siptest.Carrier) {
	t.Helper()
	transport, _ := rtptest.New(t, "127.0.0.1")
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200}
	}}
	if err := carrier.Start(); err != nil {
		t.Fatal(err)
	}
	ua := &sip.UA{Listen: "127.0.0.1:0", Media: transport}
	if err := ua.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		if err := errors.Join(ua.Close(end), carrier.Close()); err != nil {
			t.Error(err)
		}
	})
	return ua, carrier
}

func setupTime(t *testing.T, ua *sip.UA, carrier *siptest.Carrier, id string) time.Duration {
	t.Helper()
	start := time.Now()
	leg, err := ua.Dial(t.Context(), media.Target{ID: id, To: "12025550123", From: "12025550100", Trunk: media.Trunk{Proxy: carrier.Proxy()}}, nil)
	took := time.Since(start)
	if err != nil {
		t.Fatal(err)
	}
	_ = leg.Hangup(media.LocalHangup)
	return took
}

func dialFrom(t *testing.T, host string, ua *sip.UA) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: 5 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", ua.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func optionsRequest(n int) string {
	return fmt.Sprintf("OPTIONS sip:a@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1;branch=z9hG4bKhostile%d;rport\r\nFrom: <sip:s@x>;tag=f\r\n"+
		"To: <sip:a@127.0.0.1>\r\nCall-ID: hostile-%d\r\nCSeq: 1 OPTIONS\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n", n, n)
}

// checkAlive checks that a user agent answers OPTIONS over both transports.
func checkAlive(t *testing.T, ua *sip.UA, after string, n int) {
	t.Helper()
	udp, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.51.9.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	buf := make([]byte, 4096)
	_ = udp.SetReadDeadline(time.Now().Add(2 * time.Second))
	_, _ = udp.WriteTo([]byte(strings.Replace(optionsRequest(2*n), "/TCP", "/UDP", 1)), net.UDPAddrFromAddrPort(ua.Addr()))
	if size, _, err := udp.ReadFrom(buf); err != nil || !strings.HasPrefix(string(buf[:size]), "SIP/2.0 200") {
		t.Errorf("after %s OPTIONS was answered with %.40q, %v", after, buf[:size], err)
	}
	tcp := dialFrom(t, "127.51.9.1", ua)
	defer func() { _ = tcp.Close() }()
	_ = tcp.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(tcp, optionsRequest(2*n+1))
	if size, err := tcp.Read(buf); err != nil || !strings.HasPrefix(string(buf[:size]), "SIP/2.0 200") {
		t.Errorf("after %s OPTIONS over TCP was answered with %.40q, %v", after, buf[:size], err)
	}
}

// TestHalfOpenConnections opens 500 connections with incomplete messages: call setup stays
// fast, and their resources are released.
func TestHalfOpenConnections(t *testing.T) {
	ua, carrier := newUA(t)
	var before, during time.Duration
	for i := range 5 {
		before = max(before, setupTime(t, ua, carrier, fmt.Sprintf("before-%d", i)))
	}
	base := runtime.NumGoroutine()
	var conns []net.Conn
	for i := range 500 {
		conn := dialFrom(t, fmt.Sprintf("127.51.0.%d", 1+i/20), ua)
		_, _ = io.WriteString(conn, "INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP 1")
		conns = append(conns, conn)
	}
	for i := range 5 {
		during = max(during, setupTime(t, ua, carrier, fmt.Sprintf("during-%d", i)))
	}
	if during > 2*before+200*time.Millisecond {
		t.Errorf("call setup took %v, want about %v as before", during, before)
	}
	t.Logf("call setup took at most %v, and %v before", during, before)
	over := dialFrom(t, "127.51.0.1", ua)
	_ = over.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := over.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("one connection too many of a peer: %v", err)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > base+20; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, and %d before", runtime.NumGoroutine(), base)
		}
	}
	checkAlive(t, ua, "half-open connections", 1000)
}

// TestHostile sends malformed input: each ends its connection or is dropped,
// without other effects.
func TestHostile(t *testing.T) {
	ua, _ := newUA(t)
	good := optionsRequest(9000)
	with := func(line string) string { return strings.Replace(good, "Max-Forwards", line+"\r\nMax-Forwards", 1) }
	n := 0
	for name, message := range map[string]string{
		"an endless header":   with("X: " + strings.Repeat("y", 200_000)),
		"an endless line":     strings.Repeat("x", 200_000),
		"5,000 headers":       with(strings.TrimSuffix(strings.Repeat("X: y\r\n", 5000), "\r\n")),
		"a body of 4 GB":      strings.Replace(good, "Length: 0", "Length: 4294967295", 1),
		"a body below 0":      strings.Replace(good, "Length: 0", "Length: -1", 1),
		"no Content-Length":   strings.Replace(good, "Content-Length: 0\r\n", "", 1),
		"two Content-Lengths": with("l : 5"),
		"bare feeds":          strings.ReplaceAll(good, "\r\n", "\n"),
		"noise":               "\x16\x03\x01\x00\xff" + strings.Repeat("\x80\r\n", 100),
	} {
		n++
		conn := dialFrom(t, fmt.Sprintf("127.51.1.%d", n), ua)
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		_, _ = io.WriteString(conn, message)
		if reply, err := io.ReadAll(conn); errors.Is(err, context.DeadlineExceeded) || strings.HasPrefix(string(reply), "SIP/2.0 2") {
			t.Errorf("%s was answered with %.40q, %v", name, reply, err)
		} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			t.Errorf("after %s the connection is open", name)
		}
		checkAlive(t, ua, name, n)
	}
	udp, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.51.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	for name, message := range map[string]string{
		"40 kB":           with("X: y\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 40) + "X: y"),
		"a body too long": strings.Replace(good, "Length: 0", "Length: 4294967295", 1),
		"a body missing":  strings.Replace(good, "Length: 0", "Length: 10", 1),
		"no end":          strings.TrimSuffix(good, "\r\n"),
		"zeros":           strings.Repeat("\x00", 1000),
	} {
		n++
		_, _ = udp.WriteTo([]byte(message), net.UDPAddrFromAddrPort(ua.Addr()))
		checkAlive(t, ua, name, n)
	}
	_ = udp.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if size, _, err := udp.ReadFrom(make([]byte, 4096)); err == nil {
		t.Errorf("%d bytes were answered", size)
	}
	conn := dialFrom(t, "127.51.3.1", ua)
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, strings.Replace(good, "To: <sip:a@127.0.0.1>\r\n", "", 1))
	buf := make([]byte, 4096)
	if size, err := conn.Read(buf); err != nil || !strings.HasPrefix(string(buf[:size]), "SIP/2.0 400") {
		t.Errorf("without To: got %.40q, %v", buf[:size], err)
	}
	counts := ua.Ingress()
	if counts.Dropped < 8 || counts.Unreadable < 2 || counts.Refused[400] < 1 {
		t.Errorf("counted %+v", counts)
	}
}
