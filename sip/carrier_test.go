package sip

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestNoFailoverAfterProgress checks that no other proxy is tried after any response above 100,
// because carriers do not always signal ringing.
func TestNoFailoverAfterProgress(t *testing.T) {
	for _, progress := range []string{"181 Call Is Being Forwarded", "182 Queued", "199 Early Dialog Terminated", "180 Ringing", "183 Session Progress"} {
		simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
			to := target("moved")
			to.Trunk.Backups = []string{"sip:" + peerAddr + ";transport=udp;x=2"}
			invite, result := b.dial(t, to)
			b.send(t, reply(invite, progress, peerTag, "", ""))
			synctest.Wait()
			b.send(t, reply(invite, "503 Gone", peerTag, "", ""))
			b.read(t, "ACK ")
			if got := <-result; causeOf(got.err) != media.RouteError {
				t.Errorf("%s: %v", progress, got.err)
			}
		})
	}
}

// TestRemoteHangupDuringOffer checks that nothing leaks if the call ends during our offer.
func TestRemoteHangupDuringOffer(t *testing.T) {
	for _, last := range []string{"487 Request Terminated", "200 OK"} {
		simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
			call, invite := b.placeCall(t, "pending")
			held := make(chan error)
			go func() { held <- call.Hold(context.Background(), true) }()
			offer := b.read(t, "INVITE ")
			b.send(t, requestWithin(invite, "BYE", 7, ""))
			b.read(t, "SIP/2.0 200")
			if err := <-held; err == nil {
				t.Error("hold succeeded after the end of the call")
			}
			sdp := ""
			if last == "200 OK" {
				sdp = sdpWithPort(9)
			}
			b.send(t, reply(offer, last, peerTag, "", sdp))
			b.read(t, "ACK ")
		})
	}
}

type peer struct {
	t    *testing.T
	conn net.PacketConn
	from net.Addr // source of the last message
}

func listenUDP(t *testing.T, addr string) net.PacketConn {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func newPeer(t *testing.T, at string) *peer {
	t.Helper()
	return &peer{t: t, conn: listenUDP(t, at)}
}

func (p *peer) at() string { return p.conn.LocalAddr().String() }

func (p *peer) read(prefixes ...string) string {
	p.t.Helper()
	buf := make([]byte, 65536)
	for {
		if err := p.conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			p.t.Fatal(err)
		}
		n, from, err := p.conn.ReadFrom(buf)
		if err != nil {
			p.t.Fatalf("no %v: %v", prefixes, err)
		}
		p.from = from
		for _, prefix := range prefixes {
			if strings.HasPrefix(string(buf[:n]), prefix) {
				return string(buf[:n])
			}
		}
	}
}

func (p *peer) send(message, contact string) {
	p.t.Helper()
	if contact != "" {
		message = strings.Replace(message, "<sip:peer@"+peerAddr+">", contact, 1)
	}
	if _, err := p.conn.WriteTo([]byte(message), p.from); err != nil {
		p.t.Error(err)
	}
}

func (l *env) callInBackground(t *testing.T, to media.Target) <-chan media.Leg {
	t.Helper()
	got := make(chan media.Leg)
	go func() {
		call, err := l.ua.Dial(shortContext(t), to, nil)
		if err != nil {
			t.Error(err)
		}
		got <- call
	}()
	return got
}

// TestUnreachableContact checks that ACK and BYE go to the address of the INVITE if the Contact is
// unreachable.
func TestUnreachableContact(t *testing.T) {
	for name, contact := range map[string]string{
		"tls":       "<sip:peer@PEER;transport=tls>",
		"websocket": "<sip:x@gone.invalid;transport=ws>",
		"no host":   "<sip:x@gone.invalid>",
		"none":      "<tel:+12025550123>",
		"tcp":       "<sip:peer@127.0.0.1:9;transport=tcp>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, p := newEnv(t, nil), newPeer(t, "127.0.0.1:0")
			to := l.target()
			to.Trunk.Proxy = "sip:" + p.at() + ";transport=udp"
			got := l.callInBackground(t, to)
			contact = strings.Replace(contact, "PEER", p.at(), 1)
			p.send(reply(p.read("INVITE "), "200 OK", peerTag, "", sdpWithPort(9)), contact)
			p.read("ACK ")
			if call := <-got; call != nil {
				_ = call.Hangup(media.LocalHangup)
			}
			p.send(reply(p.read("BYE "), "200 OK", "", "", ""), contact)
		})
	}
}

// TestCredentialsOnlyForProxy checks that credentials go to the proxy and to no callee that is
// reached directly.
func TestCredentialsOnlyForProxy(t *testing.T) {
	l, proxy, phone := newEnv(t, nil), newPeer(t, "127.0.0.1:0"), newPeer(t, "127.0.0.2:0")
	to := l.target()
	to.Trunk.Proxy = "sip:" + proxy.at() + ";transport=udp"
	to.Trunk.Username, to.Trunk.Password = "user", "canary-secret"
	got := l.callInBackground(t, to)
	proxy.send(reply(proxy.read("INVITE "), "407 Who", peerTag, "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n", ""), "")
	invite := proxy.read("INVITE sip:12025550123")
	for header(invite, "Proxy-Authorization") == "" { // a retransmission of the first response
		invite = proxy.read("INVITE ")
	}
	proxy.send(reply(invite, "200 OK", peerTag, "", sdpWithPort(9)), "<sip:phone@"+phone.at()+">")
	ack := phone.read("ACK ")
	_ = (<-got).Hangup(media.LocalHangup)
	bye := phone.read("BYE ")
	for _, m := range []string{ack, bye} {
		if strings.Contains(m, "response=") || strings.Contains(m, "Authorization") {
			t.Errorf("the callee received\n%s", m)
		}
	}
	phone.send(reply(bye, "200 OK", "", "", ""), "")
}

// TestLongInviteWithCredentials checks that TCP is used once credentials make the INVITE too long
// for UDP.
func TestLongInviteWithCredentials(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Ring: -1, Status: 486, Challenge: &siptest.Challenge{Realm: strings.Repeat("r", 100), Username: "u", Password: "p"}}
	})
	to := l.target()
	to.Trunk.Proxy = "sip:" + l.carrier.Addr().String()
	to.Trunk.Username, to.Trunk.Password = "u", "p"
	to.Headers = map[string]string{"X-A": strings.Repeat("a", 300)}
	_, err := l.ua.Dial(shortContext(t), to, nil)
	got := l.carrier.Journal()
	if causeOf(err) != media.Busy || len(got) != 2 || got[0].Transport != "UDP" || got[1].Transport != "TCP" {
		t.Errorf("%v: %+v", err, got)
	}
}

// TestLongInviteOverUDP checks that a long INVITE goes over UDP if TCP is refused (RFC 3261 section
// 18.1.1), and that UDP is not marked as down.
func TestLongInviteOverUDP(t *testing.T) {
	l, p := newEnv(t, nil), newPeer(t, "127.0.0.1:0")
	to := l.target()
	to.Trunk.Proxy = "sip:" + p.at()
	to.Headers = map[string]string{"X-A": strings.Repeat("a", 500), "X-B": strings.Repeat("b", 500)}
	failed, _ := l.dialInBackground(shortContext(t), to)
	invite := p.read("INVITE ")
	if len(invite) < 1300 || !strings.Contains(header(invite, "Via"), "SIP/2.0/UDP") {
		t.Errorf("%d bytes by %s", len(invite), header(invite, "Via"))
	}
	p.send(reply(invite, "486 Busy Here", peerTag, "", ""), "")
	if err := <-failed; causeOf(err) != media.Busy {
		t.Error(err)
	}
	for _, s := range l.ua.ProxyStates() {
		if s.Status != health.Up {
			t.Errorf("%+v", s)
		}
	}
}

// TestMultipartAnswer checks that the description is found in a multipart body, as with ISUP.
func TestMultipartAnswer(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		invite, result := b.dial(t, target("parts"))
		body := "--b\r\nContent-Type: application/isup;version=itu-t92+\r\n\r\n\x01\x02\r\n--b\r\nContent-Type: Application/SDP\r\n\r\n" + sdpWithPort(9) + "\r\n--b--\r\n"
		answer := reply(invite, "200 OK", peerTag, "", body)
		b.send(t, strings.Replace(answer, "application/sdp", `multipart/mixed;boundary="b"`, 1))
		b.read(t, "ACK ")
		b.hangUp(t, answered(t, result))
	})
}

// TestRefreshIsRefused checks that a 422 raises the interval, and that a re-INVITE is sent if the
// peer refuses UPDATE.
func TestRefreshIsRefused(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		invite, result := b.dial(t, target("refused"))
		timers := "Allow: INVITE, UPDATE\r\nSession-Expires: 200;refresher=uac\r\n"
		b.send(t, reply(invite, "200 OK", peerTag, timers, sdpWithPort(9)))
		b.read(t, "ACK ")
		call := answered(t, result)
		first := b.read(t, "UPDATE ")
		b.send(t, reply(first, "422 Too Small", "", "Min-SE: 600\r\n", ""))
		second := b.read(t, "UPDATE ")
		if header(first, "Session-Expires") != "200;refresher=uac" || header(second, "Session-Expires") != "600;refresher=uac" || header(second, "Min-SE") != "600" {
			t.Errorf("requested %s, then %s", header(first, "Session-Expires"), header(second, "Session-Expires"))
		}
		b.send(t, reply(second, "405 Method Not Allowed", "", "", ""))
		third := b.read(t, "INVITE ", "UPDATE ")
		if !strings.HasPrefix(third, "INVITE ") {
			t.Fatalf("%.20q", third)
		}
		b.send(t, reply(third, "200 OK", "", "Session-Expires: 600;refresher=uac\r\n", sdpWithPort(9)))
		b.read(t, "ACK ")
		synctest.Wait()
		b.hangUp(t, call)
	})
}
