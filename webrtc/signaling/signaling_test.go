package signaling_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/parley-voice/parley/bench/relay"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/signaling"
	"github.com/parley-voice/parley/webrtc/webrtctest"
)

// A fixture is a server for tests. It also creates browsers that join calls.
type fixture struct {
	t        *testing.T
	server   *signaling.Server
	url      string
	clock    *mediaclock.Clock
	browsers *ice.Endpoint
	endpoint *ice.Endpoint // endpoint of the server

	// each, if set, receives every frame that the server reads.
	each func(f media.Frame, at time.Time)
	// audio is the audio that calls play; nil means a tone.
	audio media.Feed
	// longest is the maximum duration of calls.
	longest time.Duration

	mu    sync.Mutex
	used  map[string]bool
	ended map[string]media.Cause
	live  map[string]*signaling.Session
	tasks sync.WaitGroup
}

var key = signaling.TokenKey("0123456789abcdef0123456789abcdef")

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func tokenFor(call string) string {
	return key.Sign(key.NewClaims(call, time.Now().Add(time.Minute)))
}

func open(t *testing.T) *ice.Endpoint {
	t.Helper()
	return openWith(t, ice.Config{UDP: loopback})
}

func openWith(t *testing.T, c ice.Config) *ice.Endpoint {
	t.Helper()
	e, err := ice.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	s := &fixture{t: t, clock: &mediaclock.Clock{Precise: true}, browsers: open(t), used: map[string]bool{}, ended: map[string]media.Cause{}, live: map[string]*signaling.Session{}}
	ctx, quit := context.WithCancel(context.Background())
	s.tasks.Go(func() { s.clock.Run(ctx) })
	s.endpoint = open(t)
	endpoint := s.endpoint
	s.server = &signaling.Server{Calls: s, Connector: endpoint, Clock: s.clock, Key: key}
	web := httptest.NewServer(s.server)
	s.url = "ws" + strings.TrimPrefix(web.URL, "http")
	t.Cleanup(func() {
		s.mu.Lock()
		for _, x := range s.live {
			_ = x.Leg.Hangup(media.LocalHangup)
		}
		s.mu.Unlock()
		s.server.Close()
		web.Close()
		quit()
		s.tasks.Wait()
		_ = endpoint.Close()
		_ = s.browsers.Close()
	})
	return s
}

func (s *fixture) Begin(_ context.Context, c signaling.Claims, x *signaling.Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[c.ID] {
		return &signaling.RefusedError{Code: signaling.TokenUsed, Message: "used"}
	}
	s.used[c.ID], s.live[c.CallID], x.MaxDuration = true, x, s.longest
	s.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if x.Leg.WaitConnected(ctx) == nil {
			audio := s.audio
			if audio == nil {
				audio = mediatest.Tone(1000)
			}
			x.Leg.Play(audio)
			f := make(media.Frame, media.FrameLen(x.Leg.Rate()))
			for x.Leg.ReadFrame(f) == nil {
				if s.each != nil {
					s.each(f, time.Now())
				}
			}
		}
		_ = x.Leg.Hangup(media.LocalHangup)
		s.mu.Lock()
		s.ended[c.CallID] = x.Leg.Cause()
		delete(s.live, c.CallID)
		s.mu.Unlock()
		x.Bye(string(x.Leg.Cause()))
	})
	return nil
}

func (s *fixture) session(call string) *signaling.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[call]
}

func (s *fixture) browser(call string) *webrtctest.Browser {
	s.t.Helper()
	// Each browser has its own port, because the server distinguishes browsers by source address.
	endpoint := open(s.t)
	b := &webrtctest.Browser{URL: s.url, Token: tokenFor(call), Connector: endpoint, Clock: s.clock}
	s.t.Cleanup(func() { b.Close(); _ = endpoint.Close() })
	return b
}

// join returns a browser that has joined a call.
func (s *fixture) join(call string) *webrtctest.Browser {
	s.t.Helper()
	b := s.browser(call)
	s.connect(b)
	return b
}

func (s *fixture) connect(b *webrtctest.Browser) {
	s.t.Helper()
	if err := b.Join(s.ctx()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) reload(b *webrtctest.Browser) {
	s.t.Helper()
	if err := b.Reload(s.ctx()); err != nil {
		s.t.Fatal(err)
	}
}

// waitReady waits for a ready message from index from on.
func (s *fixture) waitReady(b *webrtctest.Browser, from int) {
	s.t.Helper()
	if _, err := b.Wait(s.ctx(), from, is("ready")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) send(ws *websocket.Conn, v any) {
	s.t.Helper()
	if err := ws.WriteJSON(v); err != nil {
		s.t.Fatal(err)
	}
}

func (s *fixture) ctx() context.Context {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

// waitTone reads until the remote tone arrives.
func (s *fixture) waitTone(l media.Leg) {
	s.t.Helper()
	began := time.Now()
	f := make(media.Frame, media.FrameLen(l.Rate()))
	for time.Since(began) < 30*time.Second {
		if err := l.ReadFrame(f); err != nil {
			s.t.Fatal(err)
		}
		if tone.Level(f) > -30 {
			return
		}
	}
	s.t.Fatal("no audio received")
}

func is(kind string) func(webrtctest.Message) bool {
	return func(m webrtctest.Message) bool { return m.Type == kind }
}

func TestHangUp(t *testing.T) {
	s := newFixture(t)
	for call, leave := range map[string]func(b *webrtctest.Browser){
		"call_theirs": func(b *webrtctest.Browser) {
			if err := b.Send(map[string]any{"type": "bye"}); err != nil {
				t.Error(err)
			}
		},
		"call_ours": func(*webrtctest.Browser) { _ = s.session("call_ours").Leg.Hangup(media.LocalHangup) },
	} {
		b := s.join(call)
		s.waitReady(b, 0)
		s.waitTone(b.Leg)
		leave(b)
		m, err := b.Wait(s.ctx(), 0, is("bye"))
		if err != nil || call == "call_theirs" && m.Reason != "remote" || call == "call_ours" && m.Reason != "local" {
			t.Errorf("%s: %+v %v", call, m, err)
		}
		if half, calls := s.server.Counts(); half+calls != 0 {
			t.Errorf("%d sockets and %d calls remain", half, calls)
		}
	}
}

func TestJoinRefused(t *testing.T) {
	s := newFixture(t)
	good := s.join("call_a")
	for want, b := range map[string]*webrtctest.Browser{
		"token_used":    {Token: good.Token},
		"token_invalid": {Token: signaling.TokenKey("another").Sign(key.NewClaims("call_a", time.Now().Add(time.Minute)))},
		"token_expired": {Token: key.Sign(key.NewClaims("call_b", time.Now().Add(-time.Second)))},
	} {
		b.URL, b.Connector, b.Clock = s.url, s.browsers, s.clock
		t.Cleanup(b.Close)
		var refused *webrtctest.RefusedError
		if err := b.Join(s.ctx()); !errors.As(err, &refused) || refused.Code != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	joinToken := tokenFor("call_c")
	for want, text := range map[string]string{
		"wrong_call":      `{"type":"join","call_id":"call_d","token":"` + joinToken + `"}`,
		"sdp_invalid":     `{"type":"join","token":"` + joinToken + `","sdp":"v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"}`,
		"message_invalid": `{"type":"candidate"}`,
		"resume_unknown":  `{"type":"join","resume":"guessed","sdp":"v=0"}`,
	} {
		if got := s.exchange(text); got.Type != "error" || got.Code != want || got.Message == "" {
			t.Errorf("%s: %+v", want, got)
		}
	}
	if got := s.exchange("not JSON"); got.Code != "message_invalid" {
		t.Errorf("%+v", got)
	}
	if got := s.exchange(`{"type":"join","sdp":"` + strings.Repeat("x", 65<<10) + `"}`); got.Code != "" {
		t.Errorf("a huge message: %+v", got)
	}
	if s.session("call_c") != nil {
		t.Error("an invalid offer used up its token")
	}
}

// TestCloseWaitsForBrowser checks that after an error the connection stays open until the browser closes it, or for a
// second. Closing with unread candidates resets TCP, and the browser would report a lost network.
func TestCloseWaitsForBrowser(t *testing.T) {
	s := newFixture(t)
	for name, answers := range map[string]bool{"a browser that closes": true, "a browser that does not": false} {
		ws, resp, err := websocket.DefaultDialer.DialContext(s.ctx(), s.url, http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		_ = resp.Body.Close()
		ws.SetCloseHandler(func(int, string) error { return nil })
		for range 10 { // the first is refused, the others stay unread
			if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"candidate"}`)); err != nil {
				t.Fatal(err)
			}
		}
		var m webrtctest.Message
		if err := ws.ReadJSON(&m); err != nil || m.Code != "message_invalid" {
			t.Errorf("%s: read %+v, %v", name, m, err)
		}
		if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
			t.Errorf("%s: read %v, want a close frame", name, err)
		}
		began := time.Now()
		one := make([]byte, 1)
		_ = ws.NetConn().SetReadDeadline(began.Add(200 * time.Millisecond))
		if _, err := ws.NetConn().Read(one); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection ended %v after the close frame: %v", name, time.Since(began), err)
		}
		if answers {
			_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		}
		_ = ws.NetConn().SetReadDeadline(began.Add(10 * time.Second))
		if _, err := ws.NetConn().Read(one); !errors.Is(err, io.EOF) {
			t.Errorf("%s: read %v, want the end of the connection", name, err)
		}
		if took := time.Since(began); answers && took > 900*time.Millisecond || !answers && took > 5*time.Second {
			t.Errorf("%s: the connection ended after %v", name, took)
		}
	}
}

// exchange sends one text on a new socket and returns the answer.
func (s *fixture) exchange(text string) (m webrtctest.Message) {
	s.t.Helper()
	ws, resp, err := websocket.DefaultDialer.DialContext(s.ctx(), s.url, http.Header{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer ws.Close()
	_ = resp.Body.Close()
	_ = ws.WriteMessage(websocket.TextMessage, []byte(text))
	_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
	_ = ws.ReadJSON(&m)
	return m
}

// TestResume reloads a page. It checks that a secret resumes the call once, and that the call ends if it is not resumed
// in time.
func TestResume(t *testing.T) {
	s := newFixture(t)
	s.server.ResumeTimeout = 2 * time.Second
	b := s.join("call_a")
	s.waitTone(b.Leg)
	s.session("call_a").State("speaking")
	first := b.Messages()[0].Resume
	for range 2 {
		n := len(b.Messages())
		s.reload(b)
		s.waitReady(b, n)
		if m, err := b.Wait(s.ctx(), n, is("event")); err != nil || m.State != "speaking" {
			t.Errorf("no state after resuming: %+v %v", m, err)
		}
		s.waitTone(b.Leg)
	}
	if got := s.exchange(`{"type":"join","resume":"` + first + `","sdp":"v=0"}`); got.Code != "resume_unknown" {
		t.Errorf("an old secret: %+v", got)
	}
	b.Leave()
	began := time.Now()
	for s.session("call_a") != nil && time.Since(began) < 10*time.Second {
		<-time.After(10 * time.Millisecond)
	}
	if took := time.Since(began); took < time.Second || took > 5*time.Second || s.ended["call_a"] != media.MediaTimeout {
		t.Errorf("without a socket it lasted %v and ended with %q", took, s.ended["call_a"])
	}
}

func TestRestart(t *testing.T) {
	s := newFixture(t)
	b := s.join("call_a")
	s.waitTone(b.Leg)
	for range 3 {
		if err := b.Restart(s.ctx()); err != nil {
			t.Fatal(err)
		}
		s.waitTone(b.Leg)
	}
}

func TestMediaLoss(t *testing.T) {
	s := newFixture(t)
	s.server.MediaTimeout = time.Second
	b := s.browser("call_a")
	far := open(t)
	b.Connector = far
	s.connect(b)
	s.waitTone(b.Leg)
	_ = far.Close()
	if m, err := b.Wait(s.ctx(), 0, is("bye")); err != nil || m.Reason != "media_timeout" {
		t.Errorf("%+v %v", m, err)
	}
}

// TestConsent checks that media stops without answers to connectivity checks, and resumes after an ICE restart.
func TestConsent(t *testing.T) {
	s := newFixture(t)
	s.server.ConsentTimeout = 3 * time.Second
	b := s.browser("call_a")
	var mute atomic.Bool
	r := s.viaRelay(b, relay.Path{}, func(p relay.Passing) {
		if p.There && mute.Load() && len(p.Data) > 2 && p.Data[0] == 1 && p.Data[1] == 1 { // a success response (RFC 8489 section 5)
			p.Data[0] = 0xff // an unknown protocol
		}
	})
	s.connect(b)
	b.Leg.Play(mediatest.Tone(1000))
	total, quiet := s.listen(b.Leg)
	mute.Store(true)
	live := func() int64 { return total.Load() - quiet.Load() }
	unchanged := time.Now()
	for n := live(); time.Since(unchanged) < time.Second; {
		if now := live(); now != n {
			n, unchanged = now, time.Now()
		}
		<-time.After(50 * time.Millisecond)
		if time.Since(unchanged) > 20*time.Second {
			t.Fatal("media is still sent without consent")
		}
	}
	before := r.Stats().There.Out
	mute.Store(false)
	if s.session("call_a") == nil || r.Stats().There.Out < before {
		t.Fatal("the call has ended")
	}
	n := live()
	if err := b.Restart(s.ctx()); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); live() < n+20; <-time.After(20 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("no media after a restart")
		}
	}
}

// listen reads a leg to its end and counts frames and silent frames.
func (s *fixture) listen(l media.Leg) (total, quiet *atomic.Int64) {
	total, quiet = new(atomic.Int64), new(atomic.Int64)
	s.tasks.Go(func() {
		f := make(media.Frame, media.FrameLen(l.Rate()))
		for l.ReadFrame(f) == nil {
			total.Add(1)
			if tone.Level(f) < -30 {
				quiet.Add(1)
			}
		}
	})
	return total, quiet
}

// TestIdleSockets opens 500 idle sockets. It checks that the server limits their number and duration, and that they
// disturb neither running nor new calls.
func TestIdleSockets(t *testing.T) {
	s := newFixture(t)
	s.server.JoinTimeout = 3 * time.Second
	b := s.join("call_a")
	s.waitTone(b.Leg)
	total, quiet := s.listen(b.Leg)
	var idle []*websocket.Conn
	for n := range 500 {
		idle = append(idle, s.socketFrom(byte(2+n%25))) // few per address
	}
	if half, calls := s.server.Counts(); half > 256 || calls != 1 {
		t.Errorf("%d half open, %d calls", half, calls)
	}
	later := s.join("call_b")
	s.waitTone(later.Leg)
	for i, ws := range idle {
		_ = ws.SetReadDeadline(time.Now().Add(10 * time.Second))
		var m webrtctest.Message
		if err := ws.ReadJSON(&m); err == nil && m.Code != "join_timeout" {
			t.Errorf("socket %d: %+v", i, m)
		} else if err != nil && errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("socket %d was not closed", i)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for half, _ := s.server.Counts(); half != 0; half, _ = s.server.Counts() { // the last message is sent before the socket is removed
		select {
		case <-tick.C:
		case <-s.ctx().Done():
			t.Fatalf("%d half-open sockets remain", half)
		}
	}
	if n, bad := total.Load(), quiet.Load(); n < 10 || bad > n/20 {
		t.Errorf("%d of %d frames of the live call are silent", bad, n)
	}
}

// TestTurnsSurviveReconnect checks that messages wait for the browser, and that essential messages arrive on the next
// socket.
func TestTurnsSurviveReconnect(t *testing.T) {
	s := newFixture(t)
	b := s.join("call_a")
	x := s.session("call_a")
	b.Leave()
	for n := range 500 {
		x.Transcript("caller", "hm", false, n)
		x.State("listening")
		if n%10 == 0 {
			x.Turn(json.RawMessage(`{"turn":1}`))
			x.Transcript("agent", "well", true, n)
		}
	}
	n := len(b.Messages())
	s.reload(b)
	s.waitReady(b, n)
	turns, lines, waited := 0, 0, 0 // one of each may have been in flight when the socket broke
	for _, m := range b.Messages()[n:] {
		waited++
		switch {
		case m.Event == "turn":
			turns++
		case m.Final:
			lines++
		}
	}
	if turns < 49 || lines < 49 || waited > 140 {
		t.Errorf("%d turns, %d lines, %d messages", turns, lines, waited)
	}
}
