package sip

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/rtp/rtptest"
	"github.com/parley-voice/parley/sip/leg"
)

type simEnv struct {
	ua    *UA
	media *rtp.Transport
	peer  net.PacketConn
	at    *net.UDPAddr // address of the UA
}

const (
	uaAddr   = "127.0.0.1:5060"
	peerAddr = "127.0.0.1:5062"
	peerTag  = "hand" // tag of the peer's To header
)

// simulate runs a test in a bubble and closes the UA.
func simulate(t *testing.T, ua *UA, test func(t *testing.T, b *simEnv)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		transport, _ := rtptest.New(t, "127.0.0.1")
		network := &simNet{conns: map[string]*simConn{}}
		peer, _, err := network.open(peerAddr)
		if err != nil {
			t.Fatal(err)
		}
		ua.Listen, ua.Media, ua.OpenSockets = uaAddr, transport, network.open
		if err := ua.Start(); err != nil {
			t.Fatal(err)
		}
		test(t, &simEnv{ua, transport, peer, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(uaAddr))})
		if err := ua.Close(t.Context()); err != nil {
			t.Error(err)
		}
		_ = peer.Close()
	})
}

func target(id string) media.Target {
	return media.Target{ID: id, To: "12025550123", From: "+12025550100", Trunk: media.Trunk{Proxy: "sip:" + peerAddr + ";transport=udp"}}
}

// read returns the next message with one of the prefixes and skips others.
func (b *simEnv) read(t *testing.T, prefixes ...string) string {
	t.Helper()
	buf := make([]byte, 65536)
	for {
		n, _, err := b.peer.ReadFrom(buf)
		if err != nil {
			t.Error(err)
			return ""
		}
		for _, p := range prefixes {
			if strings.HasPrefix(string(buf[:n]), p) {
				return string(buf[:n])
			}
		}
	}
}

func (b *simEnv) send(t *testing.T, message string) {
	t.Helper()
	if _, err := b.peer.WriteTo([]byte(message), b.at); err != nil {
		t.Error(err)
	}
}

func header(message, name string) string {
	for line := range strings.SplitSeq(message, "\r\n") {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(n), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// reply returns a response: status and reason, a tag if the request has none,
// further header lines, and a description if sdp is not empty.
func reply(request, status, tag, more, sdp string) string {
	var r strings.Builder
	r.WriteString("SIP/2.0 " + status + "\r\n")
	for _, name := range []string{"Via", "From", "Call-ID", "CSeq"} {
		r.WriteString(name + ": " + header(request, name) + "\r\n")
	}
	to := header(request, "To")
	if tag != "" && !strings.Contains(to, ";tag=") {
		to += ";tag=" + tag
	}
	r.WriteString("To: " + to + "\r\nContact: <sip:peer@" + peerAddr + ">\r\n" + more)
	if sdp != "" {
		r.WriteString("Content-Type: application/sdp\r\n")
	}
	fmt.Fprintf(&r, "Content-Length: %d\r\n\r\n%s", len(sdp), sdp)
	return r.String()
}

func requestWithin(invite, method string, cseq int, body string) string {
	var r strings.Builder
	fmt.Fprintf(&r, "%s sip:parley@%s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKhand%s%d;rport\r\nMax-Forwards: 70\r\n", method, uaAddr, peerAddr, method, cseq)
	fmt.Fprintf(&r, "From: %s;tag=%s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %d %s\r\nContact: <sip:peer@%s>\r\n",
		header(invite, "To"), peerTag, header(invite, "From"), header(invite, "Call-ID"), cseq, method, peerAddr)
	if body != "" {
		r.WriteString("Content-Type: application/sdp\r\n")
	}
	fmt.Fprintf(&r, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return r.String()
}

func sdpWithPort(port int) string {
	return fmt.Sprintf("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio %d RTP/AVP 0\r\n", port)
}

// placeCall dials, answers, and returns the leg and the INVITE.
func (b *simEnv) placeCall(t *testing.T, id string) (call *leg.Leg, invite string) {
	t.Helper()
	invite, result := b.dial(t, target(id))
	b.send(t, reply(invite, "200 OK", peerTag, "", sdpWithPort(9)))
	b.read(t, "ACK ")
	return answered(t, result), invite
}

// TestMissingACK checks that a 2xx without an ACK is retransmitted, and that the call is then hung
// up (RFC 3261 section 13.3.1.4).
func TestMissingACK(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "half-open")
		b.send(t, requestWithin(invite, "INVITE", 7, sdpWithPort(9)))
		began, answers := time.Now(), 0
		for {
			got := b.read(t, "SIP/2.0 200", "BYE ")
			if strings.HasPrefix(got, "BYE ") {
				b.send(t, reply(got, "200 OK", "", "", ""))
				break
			}
			answers++
		}
		if d := time.Since(began); answers < 7 || d < 30*time.Second || d > 33*time.Second || call.Cause() != media.Failure {
			t.Errorf("%d answers, hung up after %v with %q", answers, d, call.Cause())
		}
	})
}

// TestManyUnansweredByes checks that nothing leaks after 200 calls with unanswered BYEs, once timer
// F has fired (RFC 3261 section 17.1.2.2).
func TestManyUnansweredByes(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		const calls = 200
		for n := range calls {
			call, _ := b.placeCall(t, fmt.Sprintf("unanswered-%d", n))
			_ = call.Hangup(media.LocalHangup)
			if legs, _ := b.ua.Calls(); legs != 0 || call.Cause() != media.LocalHangup {
				t.Fatalf("%d legs are up, cause %q", legs, call.Cause())
			}
		}
		began := time.Now()
		if err := b.ua.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 33*time.Second {
			t.Errorf("the transactions took %v", d)
		}
	})
}

// TestByeRetriedAfter500 checks that a BYE is repeated if our own UPDATE overtook it.
func TestByeRetriedAfter500(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, _ := b.placeCall(t, "overtaken")
		_ = call.Hangup(media.LocalHangup)
		first := b.read(t, "BYE ")
		b.send(t, reply(first, "500 Out Of Order", "", "", ""))
		second := b.read(t, "BYE ")
		b.send(t, reply(second, "200 OK", "", "", ""))
		if one, two := header(first, "CSeq"), header(second, "CSeq"); one == two {
			t.Errorf("the same BYE again: %s", two)
		}
	})
}

// TestForks lets one phone send early media and two others answer. It checks that the first answer
// is connected and the second is hung up.
func TestForks(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		sinks := map[string]*net.UDPConn{}
		port := func(name string) int {
			c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			sinks[name] = c
			return c.LocalAddr().(*net.UDPAddr).Port //nolint:forcetypeassert // a UDP socket
		}
		invite, result := b.dial(t, target("forks"))
		b.send(t, reply(invite, "180 Ringing", "other", "", ""))
		b.send(t, reply(invite, "183 Session Progress", "a", "", sdpWithPort(port("a"))))
		<-time.After(200 * time.Millisecond)
		b.send(t, reply(invite, "200 OK", "b", "", sdpWithPort(port("b"))))
		b.read(t, "ACK ")
		call := answered(t, result)
		<-time.After(200 * time.Millisecond)
		early := packets(sinks["a"])
		b.send(t, reply(invite, "200 OK", "c", "", sdpWithPort(port("c"))))
		began := time.Now()
		if ack := b.read(t, "ACK "); !strings.Contains(header(ack, "To"), "tag=c") {
			t.Errorf("ACK to %s", header(ack, "To"))
		}
		bye := b.read(t, "BYE ")
		if !strings.Contains(header(bye, "To"), "tag=c") || time.Since(began) > time.Second {
			t.Errorf("after %v BYE to %s", time.Since(began), header(bye, "To"))
		}
		b.send(t, reply(bye, "200 OK", "", "", ""))
		<-time.After(time.Second)
		if n := packets(sinks["a"]); n != 0 || early == 0 {
			t.Errorf("%d packets went to the phone that only rang, before the answer %d", n, early)
		}
		if b, c := packets(sinks["b"]), packets(sinks["c"]); b < 40 || c != 0 {
			t.Errorf("%d packets to the phone that answered, %d to the one too late", b, c)
		}
		b.hangUp(t, call)
	})
}

func packets(c *net.UDPConn) (n int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return -1
	}
	b := make([]byte, 2048)
	_ = raw.Read(func(fd uintptr) bool {
		for {
			if _, err := readNow(int(fd), b); err != nil {
				return true
			}
			n++
		}
	})
	return n
}

// TestRefreshKeepsDescription checks that a peer's refresh is answered with an unchanged
// description and version (RFC 3264 section 8), and a change with a new version.
func TestRefreshKeepsDescription(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "refresh")
		version := func(cseq int, body string) string {
			b.send(t, requestWithin(invite, "INVITE", cseq, body))
			got := b.read(t, "SIP/2.0 ")
			b.send(t, requestWithin(invite, "ACK", cseq, ""))
			_, o, _ := strings.Cut(got, "\r\no=")
			return strings.Fields(o)[2]
		}
		first := version(7, sdpWithPort(9))
		if again := version(8, sdpWithPort(9)); again != first {
			t.Errorf("refreshed with version %s after %s", again, first)
		}
		if held := version(9, sdpWithPort(9)+"a=sendonly\r\n"); held == first {
			t.Errorf("hold repeats version %s", held)
		}
		b.hangUp(t, call)
	})
}

// TestHoldAfterGlare checks that the same offer is repeated after a glare, and that a refused offer
// is undone.
func TestHoldAfterGlare(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, _ := b.placeCall(t, "glare")
		held := make(chan error)
		go func() { held <- call.Hold(t.Context(), true) }()
		first := b.read(t, "INVITE ")
		b.send(t, reply(first, "491 Request Pending", "", "", ""))
		began := time.Now()
		second := b.read(t, "INVITE ", "UPDATE ")
		if d := time.Since(began); d < 2100*time.Millisecond || d > 4*time.Second || !strings.Contains(second, "a=sendonly") {
			t.Errorf("after %v came %s", d, second)
		}
		b.send(t, reply(second, "200 OK", "", "", sdpWithPort(9)+"a=recvonly\r\n"))
		if err := <-held; err != nil {
			t.Fatal(err)
		}
		go func() { held <- call.Hold(t.Context(), false) }()
		third := b.read(t, "INVITE ")
		b.send(t, reply(third, "488 Not Acceptable Here", "", "", ""))
		if err := <-held; err == nil || !strings.Contains(err.Error(), "488") {
			t.Errorf("a refused offer: %v", err)
		}
		b.hangUp(t, call)
	})
}

// TestPrackOrder checks that reliable responses are acknowledged only in order (RFC 3262 section
// 4).
func TestPrackOrder(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		rang := 0
		invite, result := b.dialWith(t, target("prack"), func(p media.Progress) {
			if p == media.Ringing {
				rang++
			}
		})
		reliable := func(n int, sdp string) string {
			return reply(invite, "183 Session Progress", "r", fmt.Sprintf("Require: 100rel\r\nRSeq: %d\r\n", n), sdp)
		}
		prack := func(rack string) {
			t.Helper()
			p := b.read(t, "PRACK ")
			if got := header(p, "RAck"); got != rack {
				t.Errorf("RAck %q, want %q", got, rack)
			}
			b.send(t, reply(p, "200 OK", "", "", ""))
		}
		b.send(t, reliable(10, sdpWithPort(9)))
		prack("10 1 INVITE")
		b.send(t, reliable(12, "")) // out of order, so not acknowledged
		synctest.Wait()
		b.send(t, reliable(10, "")) // a repetition, so not acknowledged
		synctest.Wait()
		b.send(t, reliable(11, ""))
		prack("11 1 INVITE")
		b.send(t, reply(invite, "200 OK", "r", "", "")) // the description of the 183 applies
		b.read(t, "ACK ")
		call := answered(t, result)
		if rang != 1 {
			t.Errorf("rang %d times", rang)
		}
		_ = call.Hangup(media.LocalHangup)
		bye := b.read(t, "BYE ", "PRACK ")
		if !strings.HasPrefix(bye, "BYE ") || header(bye, "CSeq") != "4 BYE" { // after two PRACKs
			t.Errorf("%.40q with CSeq %s", bye, header(bye, "CSeq"))
		}
		b.send(t, reply(bye, "200 OK", "", "", ""))
	})
}

// TestKeysByInfo checks that DTMF keys are received by INFO.
func TestKeysByInfo(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "info")
		for n, row := range []struct{ kind, body, status, key string }{
			{"application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", "200", "5"},
			{"application/dtmf-relay", "Signal= #\nDuration=160", "200", "#"},
			{"application/dtmf", "11", "200", "#"},
			{"Application/DTMF-Relay;x=y", "Duration=1\r\nsignal=d", "200", "D"},
			{"application/dtmf-relay", "Signal=xx\r\n", "400", ""},
			{"application/dtmf-relay", "", "200", ""},
			{"text/plain", "5", "415", ""},
		} {
			<-time.After(time.Second) // the same key within 100 ms counts as one press
			message := strings.Replace(requestWithin(invite, "INFO", 7+n, row.body), "application/sdp", row.kind, 1)
			b.send(t, message)
			if got := b.read(t, "SIP/2.0 "); !strings.HasPrefix(got, "SIP/2.0 "+row.status) {
				t.Errorf("%s %q: %.40q", row.kind, row.body, got)
			}
			synctest.Wait()
			select {
			case key := <-call.Digits():
				if string(key) != row.key {
					t.Errorf("%s %q: got the key %q", row.kind, row.body, key)
				}
			default:
				if row.key != "" {
					t.Errorf("%s %q: got no key", row.kind, row.body)
				}
			}
		}
		b.hangUp(t, call)
	})
}
