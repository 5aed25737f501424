package sip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/resolver"
)

// foreignAddr belongs to no trunk of these tests.
const foreignAddr = "127.0.0.3:5062"

// from returns an environment whose peer sends from another address.
func (b *simEnv) from(t *testing.T, addr string) *simEnv {
	t.Helper()
	conn, _, err := b.peer.(*simConn).network.open(addr) //nolint:forcetypeassert // from simulate
	if err != nil {
		t.Fatal(err)
	}
	return &simEnv{b.ua, b.media, conn, b.at}
}

type dialResult struct {
	leg media.Leg
	err error
}

// dial dials in the background and returns the INVITE.
func (b *simEnv) dial(t *testing.T, to media.Target) (invite string, result <-chan dialResult) {
	t.Helper()
	return b.dialWith(t, to, nil)
}

func (b *simEnv) dialWith(t *testing.T, to media.Target, progress func(media.Progress)) (invite string, result <-chan dialResult) {
	t.Helper()
	got := make(chan dialResult, 1)
	go func() {
		call, err := b.ua.Dial(t.Context(), to, progress)
		got <- dialResult{call, err}
	}()
	return b.read(t, "INVITE "), got
}

// answered returns the leg of a call that was answered.
func answered(t *testing.T, result <-chan dialResult) *leg.Leg {
	t.Helper()
	got := <-result
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.leg.(*leg.Leg) //nolint:forcetypeassert // Dial returns one
}

// TestForeignRequests checks that requests within a call are dropped if they come from an address
// outside the trunk, and that the trace shows them.
func TestForeignRequests(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		call, invite := b.placeCall(t, "foreign")
		foreign := b.from(t, foreignAddr)
		for n, method := range []string{"INVITE", "UPDATE", "INFO", "OPTIONS", "NOTIFY", "MESSAGE", "BYE"} {
			foreign.send(t, requestWithin(invite, method, 7+n, sdpWithPort(9)))
			for name, at := range map[string]*simEnv{"foreign": foreign, "carrier": b} {
				if got := at.next(time.Second); got != "" {
					t.Errorf("after a foreign %s the %s address got %.60q", method, name, got)
				}
			}
		}
		if n := b.ua.Ingress().Foreign; n != 7 {
			t.Errorf("%d messages are counted, want 7", n)
		}
		if l := ladderOf(t, call); strings.Count(l, "ignored: ") != 7 || !strings.Contains(l, "BYE sip:parley@127.0.0.1:5060 | ignored") {
			t.Errorf("the trace is\n%s", l)
		}
		b.send(t, requestWithin(invite, "OPTIONS", 7, "")) // a dropped request does not use up its CSeq
		if got := b.next(time.Second); !strings.HasPrefix(got, "SIP/2.0 200") {
			t.Errorf("OPTIONS of the carrier was answered with %.60q", got)
		}
		b.hangUp(t, call)
	})
}

// TestForeignResponses checks that responses to an INVITE are dropped if they come from an address
// outside the trunk, even with the right branch.
func TestForeignResponses(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		foreign := b.from(t, foreignAddr)
		for _, first := range []string{"", "100 Trying", "180 Ringing"} {
			invite, result := b.dial(t, target("r"+strings.Fields(first + " 0")[0]))
			if first != "" {
				b.send(t, reply(invite, first, peerTag, "", ""))
				synctest.Wait()
				foreign.send(t, reply(invite, "486 Busy Here", "other", "", ""))
			}
			foreign.send(t, reply(invite, "200 OK", "other", "", sdpWithPort(9)))
			if got := foreign.next(100 * time.Millisecond); got != "" {
				t.Errorf("after %q the foreign address got %.60q", first, got)
			}
			b.send(t, reply(invite, "404 Not Found", peerTag, "", ""))
			b.read(t, "ACK ")
			got := <-result
			if failure, ok := got.err.(*media.DialError); !ok || failure.Cause != media.InvalidNumber { //nolint:errorlint // always that
				t.Errorf("after %q: dial returned %v, %v", first, got.leg, got.err)
			} else if want := min(1, len(first)) + 1; countIgnored(failure.Ladder) != want {
				t.Errorf("after %q the trace shows %d ignored answers, want %d", first, countIgnored(failure.Ladder), want)
			}
		}
		if n := b.ua.Ingress().Foreign; n != 5 {
			t.Errorf("%d messages are counted, want 5", n)
		}
	})
}

// TestForeignResponsesOfNoCall checks that responses from unknown addresses are dropped if they
// name another call or hide their Call-ID.
func TestForeignResponsesOfNoCall(t *testing.T) {
	simulate(t, &UA{FirstMedia: -1, MediaGap: -1}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
		foreign := b.from(t, foreignAddr)
		invite, result := b.dial(t, target("none"))
		b.send(t, reply(invite, "100 Trying", peerTag, "", ""))
		synctest.Wait()
		id, cseq := "Call-ID: "+header(invite, "Call-ID")+"\r\n", "CSeq: "+header(invite, "CSeq")+"\r\n"
		answer := reply(invite, "200 OK", "other", "", sdpWithPort(9))
		for name, forged := range map[string]string{
			"another Call-ID":  strings.Replace(answer, id, "Call-ID: x\r\n", 1),
			"no Call-ID":       strings.Replace(answer, id, "", 1),
			"two Call-IDs":     strings.Replace(answer, id, "Call-ID: x\r\n"+id, 1),
			"spaces":           strings.Replace(answer, "Call-ID: ", "Call-ID     : ", 1),
			"two CSeqs":        strings.Replace(strings.Replace(answer, id, "i: x\r\n", 1), cseq, "CSeq: 1 OPTIONS\r\n"+cseq, 1),
			"two other CSeqs":  strings.Replace(strings.Replace(answer, id, "i: x\r\n", 1), cseq, cseq+"CSeq: 1 OPTIONS\r\n", 1),
			"a folded Call-ID": strings.Replace(answer, "Call-ID: ", "Call-ID:\r\n ", 1),
		} {
			foreign.send(t, forged)
			for who, at := range map[string]*simEnv{"foreign": foreign, "carrier": b} {
				if got := at.next(100 * time.Millisecond); got != "" {
					t.Errorf("%s: the %s address got %.60q", name, who, got)
				}
			}
		}
		b.send(t, reply(invite, "404 Not Found", peerTag, "", ""))
		b.read(t, "ACK ")
		if got := <-result; got.leg != nil {
			t.Error("the call was answered")
		} else if n := b.ua.Ingress().Foreign; n != 7 {
			t.Errorf("%d messages are counted, want 7", n)
		}
	})
}

func countIgnored(ladder []media.Message) (n int) {
	for _, m := range ladder {
		if strings.HasPrefix(m.Note, "ignored: ") {
			n++
		}
	}
	return n
}

type fakeDNS map[string]string

func (fakeDNS) NAPTR(context.Context, string) ([]resolver.NAPTR, error) { return nil, nil }
func (fakeDNS) SRV(context.Context, string) ([]*net.SRV, error)         { return nil, nil }
func (z fakeDNS) Addrs(_ context.Context, host string) ([]netip.Addr, error) {
	var all []netip.Addr
	for text := range strings.FieldsSeq(z[host]) {
		all = append(all, netip.MustParseAddr(text))
	}
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return all, nil
}

// TestCarrierAddresses checks which addresses count as the carrier's. Only those may send a BYE.
func TestCarrierAddresses(t *testing.T) {
	const other = "127.0.0.8"
	for _, row := range []struct {
		name     string
		more     string // further headers of the answer
		contact  string // Contact of the answer
		trunk    media.Trunk
		from     string // address from which the answer comes
		accepted bool
	}{
		{name: "not named"},
		{name: "named in Contact", contact: other, accepted: true},
		{name: "named in Contact by host name", contact: "edge.example", accepted: true},
		{name: "named in Contact, with a Record-Route", contact: other, more: "Record-Route: <sip:127.0.0.1:5062;lr>\r\n"},
		{name: "named in Record-Route", more: "Record-Route: <sip:127.0.0.1:5062;lr>, <sip:" + other + ";lr>\r\n", accepted: true},
		{name: "named in Record-Route by host name", more: "Record-Route: <sip:127.0.0.1:5062;lr>, <sip:edge.example;lr>\r\n", accepted: true},
		{name: "an address of the proxy", trunk: media.Trunk{Proxy: "sip:two.example:5062;transport=udp"}, accepted: true},
		{name: "in the trunk's sources", trunk: media.Trunk{Sources: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/29")}}, accepted: true},
		{name: "it answered the INVITE", from: other, accepted: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			ua := &UA{FirstMedia: -1, MediaGap: -1, Resolver: fakeDNS{"two.example": "127.0.0.1 " + other, "edge.example": other}}
			simulate(t, ua, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
				to := target("addresses")
				if row.trunk.Proxy != "" {
					to.Trunk.Proxy = row.trunk.Proxy
				}
				to.Trunk.Sources = row.trunk.Sources
				invite, result := b.dial(t, to)
				second := b.from(t, other+":5062")
				answering := b
				if row.from != "" {
					answering = second
				}
				answering.send(t, reply(invite, "180 Ringing", peerTag, "", ""))
				answer := reply(invite, "200 OK", peerTag, row.more, sdpWithPort(9))
				if row.contact != "" {
					answer = strings.Replace(answer, "sip:peer@127.0.0.1", "sip:peer@"+row.contact, 1)
				}
				answering.send(t, answer)
				call := <-result
				if call.err != nil {
					t.Fatal(call.err)
				}
				synctest.Wait()
				bye := requestWithin(invite, "BYE", 7, "")
				second.send(t, strings.Replace(bye, "UDP 127.0.0.1", "UDP "+other, 1))
				synctest.Wait()
				if ended := call.leg.Cause() == media.RemoteHangup; ended != row.accepted {
					t.Errorf("a BYE from the address was accepted: %t, want %t", ended, row.accepted)
				}
				if !row.accepted {
					b.send(t, bye)
					synctest.Wait()
				}
			})
		})
	}
}

// TestForbiddenTargets checks that no request and no audio is sent to this machine or its network,
// unless the trunk is there. Requests go to the trunk instead.
func TestForbiddenTargets(t *testing.T) {
	inside, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inside.Close() }()
	const trunk = "192.0.2.7:5062"
	quiet := "v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\na=inactive\r\n"
	at := inside.Addr().String()
	for n, row := range []struct{ name, contact, more, sdp string }{
		{"Contact over TCP", "FLUSHALL@" + at + ";transport=tcp", "", quiet},
		{"Contact by name", fmt.Sprintf("x@inside.example:%d;transport=tcp", inside.Addr().(*net.TCPAddr).Port), "", quiet}, //nolint:forcetypeassert // TCP
		{"Contact of the cloud", "x@169.254.169.254:80;transport=tcp", "", quiet},
		{"Record-Route", "x@192.0.2.7:5062", "Record-Route: <sip:" + at + ";transport=tcp;lr>\r\n", quiet},
		{"audio to this machine", "x@192.0.2.7:5062", "", strings.Replace(quiet, "c=IN IP4 192.0.2.7", "c=IN IP4 127.0.0.1", 1)},
		{"audio to the cloud", "x@192.0.2.7:5062", "", strings.Replace(quiet, "c=IN IP4 192.0.2.7", "c=IN IP4 169.254.169.254", 1)},
	} {
		t.Run(row.name, func(t *testing.T) {
			simulate(t, &UA{FirstMedia: -1, MediaGap: -1, Resolver: fakeDNS{"inside.example": "127.0.0.1"}}, func(t *testing.T, b *simEnv) { //nolint:thelper // the test itself
				peer := b.from(t, trunk)
				to := target(fmt.Sprintf("forbidden-%d", n))
				to.Trunk.Proxy = "sip:" + trunk + ";transport=udp"
				invite, result := peer.dial(t, to)
				peer.send(t, reply(invite, "180 Ringing", peerTag, "Require: 100rel\r\nRSeq: 1\r\n", ""))
				answer := reply(invite, "200 OK", peerTag, row.more, row.sdp)
				peer.send(t, strings.Replace(answer, "peer@"+peerAddr, row.contact, 1))
				if got := peer.read(t, "ACK "); got == "" {
					t.Error("the trunk received no ACK")
				}
				got := <-result
				switch {
				case row.sdp != quiet:
					if got.err == nil || !strings.Contains(got.err.Error(), "except the trunk's own") {
						t.Errorf("dial returned %v, %v", got.leg, got.err)
					}
				case got.err != nil:
					t.Fatal(got.err)
				default:
					_ = got.leg.Hangup(media.LocalHangup)
				}
				peer.send(t, reply(peer.read(t, "BYE "), "200 OK", "", "", ""))
				synctest.Wait()
			})
		})
	}
	_ = inside.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)) //nolint:forcetypeassert // TCP
	if conn, err := inside.Accept(); err == nil {
		_ = conn.Close()
		t.Error("a connection to this machine was opened")
	}
}

// TestForeignConnection checks that a connection with an unexpected response is closed.
func TestForeignConnection(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 52, 0, 1)}}
	conn, err := d.DialContext(shortContext(t), "tcp", l.ua.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(4 * time.Second)) // shorter than the idle timeout
	_, _ = conn.Write([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP 127.0.0.1;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>;tag=2\r\n" +
		"Call-ID: x\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n"))
	if n, err := conn.Read(make([]byte, 100)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v; want the end of the connection", n, err)
	}
	if n := l.ua.Ingress().Dropped; n != 1 {
		t.Errorf("%d are counted, want 1", n)
	}
}
