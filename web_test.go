package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/sip/siptest"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/signaling"
	"github.com/parley-voice/parley/webrtc/webrtctest"
)

// webTicket is the response of POST /v1/calls/web.
type webTicket struct {
	CallID string `json:"call_id"`
	Token  string `json:"access_token"`
	URL    string `json:"url"`
	WHIP   string `json:"whip_url"`
	Status string `json:"status"`

	Servers []ice.Server `json:"ice_servers"`
}

func ticket(t testing.TB, api *demo.Client) webTicket {
	t.Helper()
	var w webTicket
	post(t, api, "/v1/calls/web", map[string]any{"agent_id": "demo", "client": "sdk"}, &w)
	return w
}

// browsers joins web calls as a browser does.
type browsers struct{ clock *mediaclock.Clock }

func openBrowsers(t testing.TB) browsers {
	t.Helper()
	b := browsers{&mediaclock.Clock{Precise: true}}
	ctx, quit := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { b.clock.Run(ctx); close(over) }()
	t.Cleanup(func() { quit(); <-over })
	return b
}

func (b browsers) open(t testing.TB, w webTicket) *webrtctest.Browser {
	t.Helper()
	// Each browser has its own port, because the server distinguishes calls by the source of packets.
	endpoint, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	br := &webrtctest.Browser{URL: w.URL, Token: w.Token, Connector: endpoint, Clock: b.clock}
	t.Cleanup(func() { br.Close(); _ = endpoint.Close() })
	return br
}

func join(t testing.TB, br *webrtctest.Browser) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := br.Join(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestWebCall checks that a browser joins, is greeted, and gets an answer to its question. The events that it receives
// must equal the stored events.
func TestWebCall(t *testing.T) {
	t.Parallel()
	inTime(t, webCall)
}

func webCall(t testing.TB) {
	t.Helper()
	_, api := startServer(t, "127.0.0.1:9")
	w := ticket(t, api)
	if w.Status != "queued" || !strings.HasPrefix(w.URL, "ws://") || !strings.HasSuffix(w.URL, "/rtc?v=1") {
		t.Errorf("%+v", w)
	}
	br := openBrowsers(t).open(t, w)
	join(t, br)
	var exchanges []siptest.Exchange
	siptest.Person{
		Lines:      []string{"when do you open", "have you the odyssey"},
		OnExchange: func(x siptest.Exchange) { exchanges = append(exchanges, x) },
	}.Talk(t.Context(), br.Leg)
	if len(exchanges) != 3 {
		t.Errorf("%d exchanges", len(exchanges))
	}
	if err := br.Send(map[string]any{"type": "bye"}); err != nil {
		t.Fatal(err)
	}
	call, turns := waitEnded(t, api, w.CallID)
	if call.Status != "ended" || call.Reason != "callee_hangup" {
		t.Errorf("the call is %s, %s", call.Status, call.Reason)
	}
	if got := strings.Join(linesOf(call, "caller"), "; "); got != "when do you open; have you the odyssey" {
		t.Errorf("the caller was understood as %q", got)
	}
	bye, err := br.Wait(t.Context(), 0, func(m webrtctest.Message) bool { return m.Type == "bye" })
	if err != nil || bye.Reason != "callee_hangup" {
		t.Errorf("%+v %v", bye, err)
	}
	received := 0
	for _, m := range br.Messages() {
		if m.Event == "turn" {
			received++
		}
	}
	if received != len(turns) || received < 3 {
		t.Errorf("the browser received %d turns, %d are stored", received, len(turns))
	}
	for _, state := range []string{"listening", "thinking", "speaking"} {
		if !slices.ContainsFunc(br.Messages(), func(m webrtctest.Message) bool { return m.State == state }) {
			t.Errorf("the browser did not receive state %s", state)
		}
	}
	waitRecording(t, api, w.CallID)
	again := openBrowsers(t).open(t, w)
	again.Token = w.Token
	var refused *webrtctest.RefusedError
	if err := again.Join(t.Context()); !errors.As(err, &refused) || refused.Code != "call_ended" {
		t.Errorf("the token of a call that is over: %v", err)
	}
}

// TestWebCallThroughRelay checks that the response to the call request names the built-in relay, and that a browser can
// call by the relay alone.
func TestWebCallThroughRelay(t *testing.T) {
	t.Parallel()
	srv, api := startServer(t, "127.0.0.1:9", func(c *config.Config) { c.WebRTC.Relay, c.WebRTC.RelayPorts = 0, [2]int{45000, 45099} })
	w := ticket(t, api)
	if len(w.Servers) != 1 || len(w.Servers[0].URLs) != 1 || !strings.HasPrefix(w.Servers[0].URLs[0], "turn:127.0.0.1:") {
		t.Fatalf("%+v", w.Servers)
	}
	b := openBrowsers(t)
	br := b.open(t, w)
	own, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0"), RelayServers: w.Servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { br.Close(); _ = own.Close() })
	br.Connector = own
	join(t, br)
	if srv.web.relay.Allocations() == 0 {
		t.Error("the relay has no allocation")
	}
	f := make(media.Frame, media.FrameLen(br.Leg.Rate()))
	for loud, began := false, time.Now(); !loud; loud = tone.Level(f) > -45 {
		if err = br.Leg.ReadFrame(f); err != nil || time.Since(began) > 20*time.Second {
			t.Fatalf("the greeting was not audible: %v", err)
		}
	}
	if err = br.Send(map[string]any{"type": "bye"}); err != nil {
		t.Fatal(err)
	}
	if call, _ := waitEnded(t, api, w.CallID); call.Reason != "callee_hangup" {
		t.Errorf("the call ended with %s", call.Reason)
	}
}

func waitRecording(t testing.TB, api *demo.Client, id string) {
	t.Helper()
	eventually(t, "the recording of call "+id, func() bool {
		var call struct {
			Status string `json:"recording_status"`
			URL    string `json:"recording_url"`
		}
		get(t, api, "/v1/calls/"+id, &call)
		return call.Status == "ready" && len(fetch(t, call.URL)) > 16000
	})
}

// TestWebBargeIn checks that a caller interrupts the agent.
func TestWebBargeIn(t *testing.T) {
	t.Parallel()
	inTime(t, webBargeIn)
}

func webBargeIn(t testing.TB) {
	t.Helper()
	_, api := startServer(t, "127.0.0.1:9")
	w := ticket(t, api)
	br := openBrowsers(t).open(t, w)
	join(t, br)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() { // ends with the leg
		f := make(media.Frame, media.FrameLen(br.Leg.Rate()))
		for br.Leg.ReadFrame(f) == nil { //nolint:revive // the audio is not checked
		}
	}()
	if _, err := br.Wait(ctx, 0, func(m webrtctest.Message) bool { return m.State == "speaking" }); err != nil {
		t.Fatal(err)
	}
	pcm, _ := tone.Encode(br.Leg.Rate(), "stop stop please when do you open")
	br.Leg.Play(&machine{greeting: pcm})
	if _, err := br.Wait(ctx, 0, func(m webrtctest.Message) bool {
		return m.Event == "turn" && strings.Contains(string(m.Turn), `"interrupted":true`)
	}); err != nil {
		t.Errorf("nothing was interrupted: %v", err)
	}
	if _, err := br.Wait(ctx, 0, func(m webrtctest.Message) bool { return m.Role == "caller" && m.Final }); err != nil {
		t.Errorf("the caller was not understood: %v", err)
	}
	for _, m := range br.Messages() {
		if m.Role == "caller" && !m.Final {
			return
		}
	}
	t.Error("the browser received no interim transcript")
}

// endedCalls accepts calls that end before dialing.
type endedCalls chan *signaling.Session

func (srv endedCalls) Begin(_ context.Context, _ signaling.Claims, s *signaling.Session) error {
	srv <- s
	return nil
}

// TestWebCallEndsBeforeDialing checks a call that ends before dialing. Its browser must be disconnected with the
// reason, and its leg must be closed.
func TestWebCallEndsBeforeDialing(t *testing.T) {
	b := openBrowsers(t)
	endpoint, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	sessions, key := make(endedCalls, 1), signaling.TokenKey("0123456789abcdef0123456789abcdef")
	server := &signaling.Server{Calls: sessions, Connector: endpoint, Clock: b.clock, Key: key}
	defer server.Close()
	web := httptest.NewServer(server)
	defer web.Close()
	br := b.open(t, webTicket{URL: "ws" + strings.TrimPrefix(web.URL, "http"), Token: key.Sign(key.NewClaims("call_a", time.Now().Add(time.Minute)))})
	join(t, br)
	var claim control.Claim
	s := <-sessions
	attachBrowser(&claim, s)
	claim.OnEnd(control.CallResult{Status: control.Ended, Reason: control.ReasonInternalError})
	if m, err := br.Wait(t.Context(), 0, func(m webrtctest.Message) bool { return m.Type == "bye" }); err != nil || m.Reason != "internal_error" {
		t.Errorf("%+v %v", m, err)
	}
	select {
	case <-s.Leg.Done():
	default:
		t.Error("the leg is still open")
	}
}
