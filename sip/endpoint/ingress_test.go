package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
	"go.uber.org/goleak"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/dialog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, e *Endpoint) *Endpoint {
	t.Helper()
	e.Listen = "127.0.0.1:0"
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

type peer struct {
	t    *testing.T
	conn net.PacketConn
	to   net.Addr
	n    int
}

func newPeer(t *testing.T, e *Endpoint, host string) *peer {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t: t, conn: conn, to: net.UDPAddrFromAddrPort(e.Addr())}
}

// request returns a complete request with extra header lines.
func (p *peer) request(method, user string, lines ...string) string {
	p.n++
	text := fmt.Sprintf("%s sip:%s@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\r\nFrom: <sip:s@x>;tag=f\r\n"+
		"To: <sip:%s@127.0.0.1>\r\nCall-ID: %s-%d\r\nCSeq: 1 %s\r\nMax-Forwards: 70\r\nContact: <sip:s@%s>\r\n",
		method, user, p.conn.LocalAddr(), p.n, user, p.conn.LocalAddr(), p.n, method, p.conn.LocalAddr())
	for _, line := range lines {
		text += line + "\r\n"
	}
	return text + "\r\n"
}

func (p *peer) send(message string) {
	p.t.Helper()
	if _, err := p.conn.WriteTo([]byte(message), p.to); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) answer(within time.Duration) string {
	p.t.Helper()
	buf := make([]byte, 65536)
	_ = p.conn.SetReadDeadline(time.Now().Add(within))
	n, _, err := p.conn.ReadFrom(buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

func (p *peer) exchange(message string) string {
	p.t.Helper()
	p.send(message)
	return p.answer(2 * time.Second)
}

func wantStatus(t *testing.T, what, got, status string) {
	t.Helper()
	if !strings.HasPrefix(got, "SIP/2.0 "+status) {
		t.Errorf("%s was answered with %.60q, want %s", what, got, status)
	}
}

var changing = regexp.MustCompile(`(?m)branch=[^;\r]*|tag=[0-9a-f]{24}|^Call-ID: .*|rport=\d+`)

// normalize removes everything in which any two responses differ, and the user names.
func normalize(answer string, users ...string) string {
	answer = changing.ReplaceAllString(answer, "…")
	for _, u := range users {
		answer = strings.ReplaceAll(answer, "sip:"+u+"@", "sip:…@")
	}
	return answer
}

// TestResponsesDoNotRevealUsers checks that no response reveals whether a user exists.
func TestResponsesDoNotRevealUsers(t *testing.T) {
	e := start(t, &Endpoint{Name: "parley"})
	p := newPeer(t, e, "127.50.0.1")
	for _, method := range []string{"INVITE", "OPTIONS", "REGISTER", "SUBSCRIBE", "MESSAGE", "PUBLISH"} {
		want := normalize(p.exchange(p.request(method, "parley")), "parley")
		for _, user := range []string{"100", "admin", "+12025550123", "guest"} {
			if got := normalize(p.exchange(p.request(method, user)), user); got != want || got == "" {
				t.Errorf("%s for %s was answered with %q, and for parley %q", method, user, got, want)
			}
		}
	}
}

// TestHeaderSmuggling checks that extra headers in any form have no effect, and duplicates
// of single headers are refused.
func TestHeaderSmuggling(t *testing.T) {
	e := start(t, &Endpoint{Name: "parley"})
	p := newPeer(t, e, "127.50.0.2")
	for _, method := range []string{"INVITE", "OPTIONS", "REGISTER"} {
		want := normalize(p.exchange(p.request(method, "a")))
		for _, line := range []string{
			"P-Asserted-Identity: <sip:admin@127.0.0.1>", "P-Asserted-Identity : <sip:admin@127.0.0.1>", "P-Preferred-Identity\t: <sip:admin@x>",
			"X-A : v", "X-A:\r\n v", "Authorization : Digest username=\"a\"", "Proxy-Authorization:\tDigest x", "Identity : x",
			"Route : <sip:evil.example;lr>", "P-Charging-Vector:x", "History-Info : <sip:a@b>", "Diversion : <sip:a@b>", "Replaces : a;to-tag=b;from-tag=c",
		} {
			if got := normalize(p.exchange(p.request(method, "a", line))); got != want {
				t.Errorf("%s with %q was answered with %q, and without %q", method, line, got, want)
			}
		}
		for _, line := range []string{"To : <sip:x@y>", "to\t:<sip:x@y>", "t :<sip:x@y>", "From :\r\n <sip:x@y>", "i : 1", "CSeq\t: 2 " + method, "Max-Forwards : 1"} {
			wantStatus(t, fmt.Sprintf("%s with %q", method, line), p.exchange(p.request(method, "a", line)), "400")
		}
	}
}

// TestTrying checks that the library sends 100 while we hold its request.
func TestTrying(t *testing.T) {
	answer := make(chan struct{})
	e := &Endpoint{}
	e.OnInvite = func(req *sip.Request, tx sip.ServerTransaction) {
		<-answer
		e.Respond(tx, req, 486, "Busy Here")
	}
	p := newPeer(t, start(t, e), "127.0.0.1")
	wantStatus(t, "an INVITE", p.exchange(p.request("INVITE", "a")), "100")
	close(answer)
	wantStatus(t, "the same", p.answer(2*time.Second), "486")
}

// TestMerged checks that a request that arrives over two paths is answered once per path, and
// that its retransmissions get the same answer.
func TestMerged(t *testing.T) {
	e := start(t, &Endpoint{})
	p := newPeer(t, e, "127.50.0.3")
	first := p.request("INVITE", "a")
	want := p.exchange(first)
	wantStatus(t, "the first", want, "403")
	if got := p.exchange(first); got != want {
		t.Errorf("the retransmission was answered with %q, and first %q", got, want)
	}
	wantStatus(t, "by another path", p.exchange(strings.Replace(first, "z9hG4bK", "z9hG4bKother", 1)), "482")
	if n := e.Ingress().Refused[482]; n != 1 {
		t.Errorf("%d are counted", n)
	}
}

type okDialog struct{ e *Endpoint }

func (h *okDialog) Serve(req *sip.Request, tx sip.ServerTransaction) {
	h.e.Respond(tx, req, 200, "OK")
}
func (*okDialog) CheckCSeq(uint32) bool    { return true }
func (*okDialog) Hangup(media.Cause) error { return nil }

// TestOverload checks that requests above the limit are refused, and that calls are not affected.
func TestOverload(t *testing.T) {
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	e := &Endpoint{MaxInbound: 2}
	e.OnInvite = func(req *sip.Request, tx sip.ServerTransaction) {
		entered <- struct{}{}
		<-leave
		e.Respond(tx, req, 486, "Busy Here")
	}
	start(t, e)
	p, q := newPeer(t, e, "127.50.0.4"), newPeer(t, e, "127.50.0.5")
	for range 2 {
		p.send(p.request("INVITE", "a"))
		<-entered
	}
	for range 3 {
		got := q.exchange(q.request("INVITE", "a"))
		wantStatus(t, "one too many", got, "503")
		if !strings.Contains(got, "\r\nRetry-After: ") {
			t.Errorf("%q has no Retry-After", got)
		}
	}
	handler := &okDialog{e}
	key := dialog.Key{CallID: "up", Local: "ours", Remote: "f"}
	if !e.AddDialog(key, handler) {
		t.Fatal("closing")
	}
	within := q.request("INFO", "a")
	within = regexp.MustCompile(`Call-ID: .*\r`).ReplaceAllString(within, "Call-ID: up\r")
	wantStatus(t, "a call that is up", q.exchange(strings.Replace(within, "\r\nCall-ID", ";tag=ours\r\nCall-ID", 1)), "200")
	e.RemoveDialog(key, handler)
	close(leave)
	for range 2 {
		for got := ""; !strings.HasPrefix(got, "SIP/2.0 486"); {
			if got = p.answer(2 * time.Second); got == "" {
				t.Fatal("an accepted call was not answered")
			}
		}
	}
}

// TestFlood sends too many requests from one address, and checks that they are limited and that
// other addresses are not affected.
func TestFlood(t *testing.T) {
	e := start(t, &Endpoint{IsTrusted: func(a netip.Addr) bool { return a == netip.MustParseAddr("127.50.0.8") }})
	p, q, r := newPeer(t, e, "127.50.0.6"), newPeer(t, e, "127.50.0.7"), newPeer(t, e, "127.50.0.8")
	count := func(p *peer) (n int) {
		for range 400 {
			p.send(p.request("OPTIONS", "a"))
			if p.answer(20*time.Millisecond) != "" {
				n++
			}
			if n > 0 && e.Ingress().Limited > 20 {
				break
			}
		}
		return n
	}
	if n := count(p); n < 90 || n > 250 || e.Ingress().Limited <= 20 {
		t.Errorf("%d were answered, %d not", n, e.Ingress().Limited)
	}
	wantStatus(t, "another", q.exchange(q.request("OPTIONS", "a")), "200")
	for i := range 300 {
		if got := r.exchange(r.request("OPTIONS", "a")); !strings.HasPrefix(got, "SIP/2.0 200") {
			t.Fatalf("number %d of a trusted address was answered with %.40q", i, got)
		}
	}
}

// TestKnownSourcesAreBounded sends from many forged addresses: the state stays
// bounded, and nothing else is lost.
func TestKnownSourcesAreBounded(t *testing.T) {
	const sources = 13_000
	e := start(t, &Endpoint{})
	p := newPeer(t, e, "127.50.0.9")
	wantStatus(t, "before", p.exchange(p.request("OPTIONS", "a")), "200")
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most := heap(), 0
	answered := 0
	for n := range sources {
		host := fmt.Sprintf("127.%d.%d.%d", 60+n>>16, n>>8&0xff, n&0xff)
		conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		other := &peer{t: t, conn: conn, to: p.to}
		other.send(other.request("OPTIONS", "a"))
		if n%20 == 0 { // so that the socket buffer does not overflow
			if other.answer(2*time.Second) != "" {
				answered++
			}
			most = max(most, e.ua.TransportLayer().Pool("udp").Size())
		}
		_ = conn.Close()
	}
	if answered != sources/20 {
		t.Errorf("%d of %d were answered", answered, sources/20)
	}
	wantStatus(t, "afterwards", p.exchange(p.request("OPTIONS", "a")), "200")
	if most < 1000 || most > 3*4096 {
		t.Errorf("%d addresses were known at once", most)
	}
	grown := heap() - before
	if grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	t.Logf("%d sources: %d known at most, %d kB more heap", sources, most, grown>>10)
}
