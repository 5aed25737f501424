package sip

import (
	"bytes"
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
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/siptest"
)

type outsidePeer struct {
	t    *testing.T
	conn net.PacketConn
	to   net.Addr
	n    int
}

func newOutsidePeer(t *testing.T, l *env) *outsidePeer {
	t.Helper()
	return newOutsidePeerAt(t, l, "127.0.0.1:0")
}

// request returns a complete request. replace sets headers by name; an empty value omits the
// header.
func (s *outsidePeer) request(method string, replace map[string]string) string {
	s.n++
	headers := []string{
		"Via", fmt.Sprintf("SIP/2.0/UDP %s;branch=z9hG4bKx%d;rport", s.conn.LocalAddr(), s.n),
		"From", "<sip:evil@example.org>;tag=f", "To", "<sip:parley@127.0.0.1>", "Call-ID", fmt.Sprintf("x%d", s.n),
		"CSeq", "1 " + method, "Max-Forwards", "70", "Contact", fmt.Sprintf("<sip:evil@%s>", s.conn.LocalAddr()), "Content-Length", "0",
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s sip:parley@%s SIP/2.0\r\n", method, s.to)
	for i := 0; i < len(headers); i += 2 {
		value := headers[i+1]
		if v, ok := replace[headers[i]]; ok {
			value = v
		}
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", headers[i], value)
		}
	}
	return b.String() + "\r\n"
}

func (s *outsidePeer) send(message string) string {
	s.t.Helper()
	if _, err := s.conn.WriteTo([]byte(message), s.to); err != nil {
		s.t.Fatal(err)
	}
	// Refusals of earlier requests are retransmitted without an ACK.
	_, rest, _ := strings.Cut(message, "branch=")
	branch, _, _ := strings.Cut(rest, ";")
	branch, _, _ = strings.Cut(branch, "\r")
	buf := make([]byte, 65536)
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		n, _, err := s.conn.ReadFrom(buf)
		if err != nil {
			return ""
		}
		if text := string(buf[:n]); strings.HasPrefix(text, "SIP/2.0 ") && !strings.HasPrefix(text, "SIP/2.0 1") && branch != "" && strings.Contains(text, branch) {
			return text
		}
	}
}

func TestRequestsOutsideDialogs(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	s := newOutsidePeer(t, l)
	for _, row := range []struct {
		method  string
		replace map[string]string
		want    string
		holds   string
	}{
		{"INVITE", nil, "403", ""},
		{"INVITE", map[string]string{"To": "<sip:guest@127.0.0.1>"}, "403", ""},
		{"INVITE", map[string]string{"To": "<sip:parley@127.0.0.1>;tag=made-up"}, "481", ""},
		{"OPTIONS", nil, "200", "Accept: application/sdp"},
		{"OPTIONS", nil, "200", "Allow: INVITE"},
		{"OPTIONS", map[string]string{"To": "<sip:parley@127.0.0.1>;tag=made-up"}, "481", ""},
		{"BYE", map[string]string{"To": "<sip:parley@127.0.0.1>;tag=made-up"}, "481", ""},
		{"CANCEL", nil, "481", ""},
		{"MESSAGE", nil, "405", "Allow: INVITE"},
		{"REGISTER", nil, "405", ""},
		{"SUBSCRIBE", nil, "405", ""},
		{"REFER", nil, "405", ""},
		{"NONSENSE", nil, "405", ""},
		{"INVITE", map[string]string{"To": ""}, "400", ""},
		{"INVITE", map[string]string{"From": ""}, "400", ""},
		{"INVITE", map[string]string{"From": "<sip:evil@example.org>"}, "403", ""}, // older peers send no tag
		{"INVITE", map[string]string{"Call-ID": ""}, "400", ""},
		{"INVITE", map[string]string{"CSeq": "1 BYE"}, "400", ""},
		{"INVITE", map[string]string{"Call-ID": strings.Repeat("a", 600)}, "400", ""},
	} {
		got := s.send(s.request(row.method, row.replace))
		if !strings.HasPrefix(got, "SIP/2.0 "+row.want) || !strings.Contains(got, row.holds) {
			t.Errorf("%s %v answered %.60q, want %s with %q", row.method, row.replace, got, row.want, row.holds)
		}
	}
	// Messages without a response.
	for name, message := range map[string]string{
		"empty lines":   "\r\n\r\n",
		"noise":         "\x00\x01\x02 SIP",
		"bare feeds":    strings.ReplaceAll(s.request("OPTIONS", nil), "\r\n", "\n"),
		"huge":          strings.Replace(s.request("OPTIONS", nil), "\r\n", "\r\nX: "+strings.Repeat("y", 20000)+"\r\n", 1),
		"many headers":  strings.Replace(s.request("OPTIONS", nil), "\r\n", "\r\n"+strings.Repeat("X: y\r\n", 100), 1),
		"endless body":  strings.Replace(s.request("OPTIONS", nil), "Length: 0", "Length: 4294967295", 1),
		"stray ACK":     s.request("ACK", nil),
		"forged answer": "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bKforged\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:a@b>;tag=2\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n\r\n",
	} {
		if got := s.send(message); got != "" {
			t.Errorf("%s was answered with %.60q", name, got)
		}
	}
	if in := l.ua.Ingress(); in.Dropped+in.Limited < 3 {
		t.Errorf("%d messages dropped", in.Dropped+in.Limited)
	}
	l.ua.Drain()
	if got := s.send(s.request("OPTIONS", nil)); !strings.HasPrefix(got, "SIP/2.0 503") || !strings.Contains(got, "Retry-After") {
		t.Errorf("OPTIONS while draining answered %.60q", got)
	}
}

// TestInDialog sends requests within a call.
func TestInDialog(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	leg := l.call(t, l.target())
	s := newOutsidePeer(t, l)
	key := leg.DialogKey()
	dialog := func(cseq string) map[string]string {
		return map[string]string{
			"Call-ID": key.CallID, "To": "<sip:parley@127.0.0.1>;tag=" + key.Local,
			"From": "<sip:callee@127.0.0.1>;tag=" + key.Remote, "CSeq": cseq,
		}
	}
	withBody := func(message, body string) string {
		message = strings.Replace(message, "Content-Length: 0", fmt.Sprintf("Content-Type: application/sdp\r\nContent-Length: %d", len(body)), 1)
		return message + body
	}
	hold := string(bytes.Replace(sdp.Offer(s.conn.LocalAddr().(*net.UDPAddr).AddrPort(), sdp.Origin{ID: 1, Version: 2}, sdp.Capabilities{}).Bytes(), []byte("sendrecv"), []byte("sendonly"), 1))
	if got := s.send(withBody(s.request("INVITE", dialog("10 INVITE")), hold)); !strings.HasPrefix(got, "SIP/2.0 200") || !strings.Contains(got, "a=recvonly") {
		t.Errorf("hold was answered with %q", got)
	}
	s.send(s.request("ACK", dialog("10 ACK")))
	if got := s.send(withBody(s.request("INVITE", dialog("11 INVITE")), strings.Replace(hold, " 0 8 9 101", " 18", 1))); !strings.HasPrefix(got, "SIP/2.0 488") {
		t.Errorf("an offer without a supported codec was answered with %.60q", got)
	}
	for _, to := range []string{"IP6 2001:db8::7", "IP6 ff02::1", "IP4 239.1.2.3/64"} {
		if got := s.send(withBody(s.request("INVITE", dialog("11 INVITE")), strings.ReplaceAll(hold, "IP4 127.0.0.1", to))); !strings.HasPrefix(got, "SIP/2.0 488") {
			t.Errorf("an offer of %s was answered with %.60q", to, got)
		}
	}
	for n, to := range []string{"IP4 0.0.0.0", "IP6 ::"} { // hold as in RFC 2543
		cseq := fmt.Sprint(12 + n)
		old := strings.ReplaceAll(strings.Replace(hold, "sendonly", "sendrecv", 1), "IP4 127.0.0.1", to)
		if got := s.send(withBody(s.request("INVITE", dialog(cseq+" INVITE")), old)); !strings.HasPrefix(got, "SIP/2.0 200") || !strings.Contains(got, "a=inactive") {
			t.Errorf("hold by %s was answered with %q", to, got)
		}
		s.send(s.request("ACK", dialog(cseq+" ACK")))
	}
	if got := s.send(s.request("INVITE", dialog("14 INVITE"))); !strings.HasPrefix(got, "SIP/2.0 200") || !strings.Contains(got, "a=sendrecv") {
		t.Errorf("a re-INVITE without an offer was answered with %q", got)
	}
	s.send(withBody(s.request("ACK", dialog("14 ACK")), strings.Replace(hold, "sendonly", "sendrecv", 1)))
	if got := s.send(s.request("OPTIONS", dialog("15 OPTIONS"))); !strings.HasPrefix(got, "SIP/2.0 200") {
		t.Errorf("OPTIONS was answered with %.60q", got)
	}
	if got := s.send(s.request("UPDATE", dialog("9 UPDATE"))); !strings.HasPrefix(got, "SIP/2.0 500") {
		t.Errorf("an old UPDATE was answered with %.60q", got)
	}
	// A BYE of any CSeq ends the call.
	if got := s.send(s.request("BYE", dialog("9 BYE"))); !strings.HasPrefix(got, "SIP/2.0 200") {
		t.Errorf("BYE was answered with %.60q", got)
	}
	<-leg.Ended()
	if c := leg.Cause(); c != media.RemoteHangup {
		t.Errorf("cause %q", c)
	}
	if err := l.carrier.Close(); err != nil { // the peer gets 481 for its own BYE
		t.Error(err)
	}
}

func TestMediaTimeout(t *testing.T) {
	l := newEnvWith(t, &UA{FirstMedia: 100 * time.Millisecond}, func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 200, NoMedia: true}
	})
	start := time.Now()
	leg := l.call(t, l.target())
	if err := drain(leg); !errors.Is(err, io.EOF) {
		t.Errorf("the reader got %v", err)
	}
	if d := time.Since(start); leg.Cause() != media.MediaTimeout || d < 100*time.Millisecond || d > 2*time.Second {
		t.Errorf("ended with %q after %v", leg.Cause(), d)
	}
	l.waitEntry(t, func(e siptest.Entry) bool { return e.Cause == media.RemoteHangup })
}

// TestUnansweredBye checks that the leg ends at once although its BYE is never answered; only
// Close waits.
func TestUnansweredBye(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 200, IgnoreBye: true} })
	leg := l.call(t, l.target())
	start := time.Now()
	_ = leg.Hangup(media.LocalHangup)
	if d := time.Since(start); d > 500*time.Millisecond || leg.Cause() != media.LocalHangup {
		t.Errorf("hanging up took %v, cause %q", d, leg.Cause())
	}
	if connected, _ := l.ua.Calls(); connected != 0 {
		t.Errorf("%d calls up", connected)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.ua.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close did not wait for the BYE: %v", err)
	}
}

// TestManyCalls checks that many calls leak nothing.
func TestManyCalls(t *testing.T) {
	const calls, atOnce = 200, 20
	l := newEnv(t, func(in siptest.Invite) siptest.Script {
		s := siptest.Script{Status: 200}
		switch in.To {
		case "1": // the callee hangs up by itself
			s.Talk = func(_ context.Context, leg media.Leg) { _, _ = toneLevel(leg, 3, 440) }
		case "2":
			s = siptest.Script{Status: 486}
		}
		return s
	})
	base := runtime.NumGoroutine()
	inParallel(calls, atOnce, func(n int) {
		target := l.target()
		target.To = fmt.Sprint(n % 4)
		leg, err := l.ua.Dial(t.Context(), target, nil)
		switch {
		case n%4 == 2 && err == nil, n%4 != 2 && err != nil:
			t.Errorf("call %d: %v", n, err)
		case n%4 == 1:
			_ = drain(leg)
		case leg != nil:
			_, _ = toneLevel(leg, 3, 440)
			_ = leg.Hangup(media.LocalHangup)
		}
	})
	err := l.carrier.Wait(shortContext(t), func(all []siptest.Entry) bool {
		for _, e := range all {
			if e.EndedAt.IsZero() {
				return false
			}
		}
		return len(all) == calls
	})
	if err != nil {
		t.Fatal(err)
	}
	connected, dialing := l.ua.Calls()
	if connected != 0 || dialing != 0 || l.carrier.Calls() != 0 {
		t.Errorf("%d connected, %d dialing, %d at the carrier", connected, dialing, l.carrier.Calls())
	}
	// Ports and goroutines are released after the response to the BYE.
	waitFor(t, func() bool {
		return l.media.SessionCount() == 0 && l.ports.InUse() == 0 && runtime.NumGoroutine() <= base+5
	}, func() string {
		return fmt.Sprintf("%d sessions, %d ports, %d goroutines, want %d", l.media.SessionCount(), l.ports.InUse(), runtime.NumGoroutine(), base)
	})
	if sum := l.media.Stats(); sum.Sent < calls || sum.Received < calls {
		t.Errorf("media %+v", sum)
	}
}
