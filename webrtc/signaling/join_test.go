package signaling_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/leg"
	"github.com/parley-voice/parley/webrtc/signaling"
	"github.com/parley-voice/parley/webrtc/webrtctest"
)

// socket opens a WebSocket without a browser.
func (s *fixture) socket() *websocket.Conn { return s.socketFrom(1) }

// socketFrom opens a WebSocket from 127.0.0.n.
func (s *fixture) socketFrom(n byte) *websocket.Conn {
	s.t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, n)}}
	d := &websocket.Dialer{NetDialContext: from.DialContext}
	ws, resp, err := d.DialContext(s.ctx(), s.url, http.Header{})
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	s.t.Cleanup(func() { _ = ws.Close() })
	return ws
}

// offer returns an offer of a connection whose answer is never applied.
func (s *fixture) offer() (string, *leg.Leg) {
	s.t.Helper()
	endpoint := open(s.t)
	l := &leg.Leg{Connector: endpoint, Clock: s.clock, LossTimeout: time.Minute}
	if err := l.Open(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = l.Hangup(media.LocalHangup); _ = endpoint.Close() })
	text, err := l.CreateOffer(s.ctx())
	if err != nil {
		s.t.Fatal(err)
	}
	return text, l
}

// TestLateRestart checks that the answer to a restart is not sent on a later socket, which has another peer connection.
func TestLateRestart(t *testing.T) {
	s := newFixture(t)
	for n := range 5 {
		b := s.join(fmt.Sprint("call_", n))
		again, err := b.Leg.CreateRestartOffer(s.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if err = b.Send(map[string]any{"type": "restart", "sdp": again}); err != nil {
			t.Fatal(err)
		}
		b.Leave() // as after a network outage, the server receives the restart and the close at once
		<-time.After(50 * time.Millisecond)
		from := len(b.Messages())
		s.reload(b)
		s.waitReady(b, from)
		var kinds []string
		for _, m := range b.Messages()[from:] {
			kinds = append(kinds, m.Type)
		}
		if len(kinds) != 2 || kinds[0] != "answer" || kinds[1] != "ready" {
			t.Errorf("after resuming got %v", kinds)
		}
		b.Close()
	}
}

// TestLostAnswer checks that a resumption whose answer was lost can be repeated until the new socket has sent a
// message.
func TestLostAnswer(t *testing.T) {
	s := newFixture(t)
	b := s.join("call_a")
	first := b.Messages()[0].Resume
	b.Leave()
	resume := func(secret string) (*websocket.Conn, webrtctest.Message) {
		ws := s.socket()
		offer, _ := s.offer()
		s.send(ws, map[string]any{"type": "join", "resume": secret, "sdp": offer})
		var m webrtctest.Message
		_ = ws.ReadJSON(&m)
		return ws, m
	}
	for range 3 { // do not read the answer
		ws := s.socket()
		offer, _ := s.offer()
		s.send(ws, map[string]any{"type": "join", "resume": first, "sdp": offer})
		_ = ws.Close()
	}
	if _, m := resume(first); m.Type != "answer" || m.Resume == first {
		t.Fatalf("after answers that were lost: %+v", m)
	}
	ws := s.socket()
	s.send(ws, map[string]any{"type": "join", "resume": first, "sdp": "v=0"})
	var m webrtctest.Message
	if err := ws.ReadJSON(&m); err != nil || m.Code != "sdp_invalid" {
		t.Errorf("an offer that cannot be answered: %+v %v", m, err)
	}
	ws, m = resume(first)
	if m.Type != "answer" {
		t.Fatalf("after an offer that could not be answered: %+v", m)
	}
	s.send(ws, map[string]any{"type": "candidate", "candidate": nil})
	last := m.Resume
	for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
		if got := s.exchange(`{"type":"join","resume":"` + first + `","sdp":"v=0"}`); got.Code == "resume_unknown" {
			break
		}
		if time.Since(began) > 5*time.Second {
			t.Fatal("an old secret was accepted")
		}
	}
	if _, calls := s.server.Counts(); calls != 1 {
		t.Errorf("got %d calls, want 1", calls)
	}
	if _, m := resume(last); m.Type != "answer" {
		t.Errorf("by the secret of the last answer: %+v", m)
	}
}

// TestErrorsAfterJoin checks that a joined browser receives an error before its socket is closed. An unusable candidate
// does not close the socket.
func TestErrorsAfterJoin(t *testing.T) {
	s := newFixture(t)
	n := 0
	for text, want := range map[string]string{
		`{"type":"nonsense"}`:                                          "message_invalid",
		`nonsense`:                                                     "message_invalid",
		`{"type":"candidate","candidate":1}`:                           "message_invalid",
		`{"type":"restart","sdp":"v=0"}`:                               "sdp_invalid",
		`{"type":"text","text":" \n"}`:                                 "message_invalid",
		`{"type":"text","text":"a\u0007"}`:                             "message_invalid",
		`{"type":"text","text":"` + strings.Repeat("é", 1001) + `"}`:   "message_invalid",
		`{"type":"text","text":"` + strings.Repeat("é", 1000) + `"}`:   "",
		`{"type":"candidate","candidate":{"candidate":"candidate:x"}}`: "",
		`{"type":"candidate","candidate":{"candidate":"candidate:1 1 udp 1 nowhere.example 9 typ host","sdpMLineIndex":7}}`: "",
	} {
		n++
		ws := s.socket()
		offer, l := s.offer()
		s.send(ws, map[string]any{"type": "join", "token": tokenFor(fmt.Sprint("call_", n)), "sdp": offer})
		var m webrtctest.Message
		if err := ws.ReadJSON(&m); err != nil || m.Type != "answer" {
			t.Fatalf("%+v %v", m, err)
		}
		if err := l.AcceptAnswer(m.SDP); err != nil {
			t.Fatal(err)
		}
		_ = ws.WriteMessage(websocket.TextMessage, []byte(text))
		_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"bye"}`))
		for m.Type != "error" && m.Type != "bye" {
			m = webrtctest.Message{}
			if err := ws.ReadJSON(&m); err != nil {
				t.Errorf("%s: %v", text, err)
				break
			}
		}
		if m.Code != want {
			t.Errorf("%s: %+v, want %q", text, m, want)
		}
	}
}

// A pausedCalls is a Calls whose Begin waits until the test closes proceed.
type pausedCalls struct {
	*fixture

	started, proceed chan struct{}
}

func (s *pausedCalls) Begin(ctx context.Context, c signaling.Claims, x *signaling.Session) error {
	select {
	case s.started <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-s.proceed
	return s.fixture.Begin(ctx, c, x)
}

// TestIdleSocketsOfOneAddress checks that new idle sockets close only older idle sockets of the same address, and no
// socket whose call is beginning.
func TestIdleSocketsOfOneAddress(t *testing.T) {
	s := newFixture(t)
	calls := &pausedCalls{s, make(chan struct{}), make(chan struct{})}
	s.server.Calls = calls
	other := s.socketFrom(2)
	offer, _ := s.offer()
	joining := s.socket()
	s.send(joining, map[string]any{"type": "join", "token": tokenFor("call_a"), "sdp": offer})
	<-calls.started
	for range 100 {
		s.socket()
	}
	if half, _ := s.server.Counts(); half > 33 {
		t.Errorf("got %d half-open sockets", half)
	}
	close(calls.proceed)
	var m webrtctest.Message
	if err := joining.ReadJSON(&m); err != nil || m.Type != "answer" {
		t.Errorf("the socket whose call is beginning: %+v %v", m, err)
	}
	s.send(other, map[string]any{"type": "join", "resume": "guessed"})
	if err := other.ReadJSON(&m); err != nil || m.Code != "resume_unknown" {
		t.Errorf("a socket of another address: %+v %v", m, err)
	}
}

// A stuckCalls is a Calls whose database does not answer.
type stuckCalls struct{}

func (stuckCalls) Begin(ctx context.Context, _ signaling.Claims, _ *signaling.Session) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestBeginTimeout(t *testing.T) {
	s := newFixture(t)
	s.server.Calls, s.server.BeginTimeout = stuckCalls{}, 200*time.Millisecond
	var refused *webrtctest.RefusedError
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.browser("call_a").Join(ctx); !errors.As(err, &refused) || refused.Code != "unavailable" {
		t.Errorf("%v", err)
	}
}

// A countingConnector counts the peer connections created.
type countingConnector struct {
	leg.Connector

	created atomic.Int32
}

func (c *countingConnector) Connect() (*webrtc.PeerConnection, error) {
	c.created.Add(1)
	return c.Connector.Connect()
}

// TestUsedTokens checks that a used token creates no peer connection, and that a token stays usable after a failed
// join.
func TestUsedTokens(t *testing.T) {
	s := newFixture(t)
	connects := &countingConnector{Connector: s.endpoint}
	s.server.Connector = connects
	offer, _ := s.offer()
	join := func(call, sdp string) *websocket.Conn {
		ws := s.socket()
		s.send(ws, map[string]any{"type": "join", "token": tokenFor(call), "sdp": sdp})
		return ws
	}
	wantMessage := func(ws *websocket.Conn, want string) {
		t.Helper()
		var m webrtctest.Message
		if err := ws.ReadJSON(&m); err != nil || m.Code != want && m.Type != want {
			t.Errorf("%+v %v, want %s", m, err, want)
		}
	}
	wantMessage(join("call_a", "v=0"), "sdp_invalid")
	wantMessage(join("call_a", offer), "answer")
	before := connects.created.Load()
	for range 3 {
		wantMessage(join("call_a", offer), "token_used")
	}
	s.mu.Lock()
	s.used[key.NewClaims("call_b", time.Now()).ID] = true // used on another node
	s.mu.Unlock()
	for range 3 {
		wantMessage(join("call_b", offer), "token_used")
	}
	calls := &pausedCalls{s, make(chan struct{}), make(chan struct{})}
	s.server.Calls = calls
	first := join("call_c", offer)
	<-calls.started
	for range 3 {
		wantMessage(join("call_c", offer), "unavailable")
	}
	close(calls.proceed)
	wantMessage(first, "answer")
	if n := connects.created.Load() - before; n != 2 {
		t.Errorf("got %d peer connections, want 2", n)
	}
	x := s.session("call_a")
	_ = x.Leg.Hangup(media.LocalHangup)
	for s.session("call_a") != nil {
		<-time.After(time.Millisecond)
	}
	x.Bye("local")
	wantMessage(join("call_a", offer), "call_ended")
}
