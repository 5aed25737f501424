package webcaller

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/signaling"
)

var key = signaling.TokenKey("0123456789abcdef0123456789abcdef")

// A testServer is a server that plays a tone on its calls.
type testServer struct {
	url   string
	clock *mediaclock.Clock
	tasks sync.WaitGroup

	heard chan float64 // level of each frame, dB
	calls chan *signaling.Session
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	h := &testServer{clock: &mediaclock.Clock{Precise: true}, heard: make(chan float64, 1000), calls: make(chan *signaling.Session, 10)}
	ctx, quit := context.WithCancel(context.Background())
	h.tasks.Go(func() { h.clock.Run(ctx) })
	endpoint, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	server := &signaling.Server{Calls: h, Connector: endpoint, Clock: h.clock, Key: key}
	web := httptest.NewServer(server)
	h.url = "ws" + strings.TrimPrefix(web.URL, "http")
	t.Cleanup(func() {
		server.Close()
		web.Close()
		quit()
		h.tasks.Wait()
		if err := endpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *testServer) Begin(_ context.Context, _ signaling.Claims, x *signaling.Session) error {
	h.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if x.Leg.WaitConnected(ctx) == nil {
			h.calls <- x
			hum := tone.Sine(x.Leg.Rate(), media.FrameLen(x.Leg.Rate()), 1000, 0.25)
			x.Leg.Play(media.FeedFunc(func(f media.Frame, _ time.Time) { copy(f, hum) }))
			f := make(media.Frame, media.FrameLen(x.Leg.Rate()))
			for x.Leg.ReadFrame(f) == nil {
				select {
				case h.heard <- tone.Level(f):
				default:
				}
			}
		}
		_ = x.Leg.Hangup(media.LocalHangup)
		x.Bye(string(x.Leg.Cause()))
	})
	return nil
}

func (h *testServer) caller(codecs ...string) Caller {
	return Caller{URL: h.url, Token: key.Sign(key.NewClaims("call_"+rand.Text(), time.Now().Add(time.Minute))), Codecs: codecs, Clock: h.clock}
}

// A microphone plays a tone and records when each frame was due and when it was requested.
type microphone struct {
	mu        sync.Mutex
	hum       []int16
	due       []time.Time
	requested []time.Time
}

func (m *microphone) FillFrame(f media.Frame, due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	copy(f, m.hum)
	m.due, m.requested = append(m.due, due), append(m.requested, time.Now())
}

// TestWebCaller checks, for each codec, that caller and server hear each other and that the times are right.
func TestWebCaller(t *testing.T) {
	h := newTestServer(t)
	for want, offered := range map[string][]string{"G722": nil, "PCMU": {"PCMU"}, "PCMA": {"PCMA", "PCMU"}} {
		l, err := h.caller(offered...).Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := codec.ByName(want); l.Codec() != want || l.Rate() != c.Rate() {
			t.Errorf("got %s at %d Hz, want %s", l.Codec(), l.Rate(), want)
		}
		for len(h.heard) > 0 {
			<-h.heard // frames of the previous call
		}
		mic := &microphone{hum: tone.Sine(l.Rate(), media.FrameLen(l.Rate()), 1000, 0.25)}
		l.Play(mic)
		came := hears(t, l)
		for i, at := range came {
			if gap := at.Sub(came[max(0, i-1)]); gap < 0 || time.Since(at) < 0 || at.Before(l.opened) {
				t.Errorf("frame %d arrived %v after the previous one", i, gap)
			}
		}
		loud := false
		for late := time.After(10 * time.Second); !loud; {
			select {
			case level := <-h.heard:
				loud = level > -30
			case <-late:
				t.Fatal("the server received no audio")
			}
		}
		mic.mu.Lock()
		due, requested := slices.Clone(mic.due[:len(mic.due)-1]), mic.requested
		mic.mu.Unlock()
		for i := range due {
			if at, ok := l.Departed(due[i]); !ok || at.Before(requested[i]) || !at.Before(requested[i+1]) {
				t.Fatalf("%s: frame %d of %d left at %v: %v, it was requested at %v", want, i, len(due), at, ok, requested[i])
			}
		}
		if _, ok := l.Departed(due[0].Add(time.Millisecond)); ok {
			t.Error("frame that was never due: got a departure, want none")
		}
		server := <-h.calls
		if err = l.Hangup(media.LocalHangup); err != nil || l.Cause() != media.LocalHangup || l.Hangup(media.Failure) != nil {
			t.Error(l.Cause(), err)
		}
		<-server.Leg.Done()
		if c := server.Leg.Cause(); c != media.RemoteHangup {
			t.Errorf("server: got cause %s", c)
		}
	}
}

// hears reads until ten frames of the tone have arrived, and returns their arrival times.
func hears(t *testing.T, l *Leg) []time.Time {
	t.Helper()
	f := make(media.Frame, media.FrameLen(l.Rate()))
	var came []time.Time
	for late := time.Now().Add(10 * time.Second); len(came) < 10; {
		if err := l.ReadFrame(f); err != nil {
			t.Fatal(err)
		}
		if at, measured := l.Arrived(); measured && tone.Level(f) > -30 {
			came = append(came, at)
		}
		if time.Now().After(late) {
			t.Fatal("received no audio")
		}
	}
	return came
}

// TestServerHangup checks that the leg ends when the server ends the call.
func TestServerHangup(t *testing.T) {
	h := newTestServer(t)
	l, err := h.caller().Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hears(t, l)
	server := <-h.calls
	_ = server.Leg.Hangup(media.LocalHangup)
	f := make(media.Frame, media.FrameLen(l.Rate()))
	for err == nil {
		err = l.ReadFrame(f)
	}
	if !errors.Is(err, io.EOF) || l.Cause() != media.RemoteHangup {
		t.Errorf("got %v, %s", err, l.Cause())
	}
	if err = l.Hangup(media.LocalHangup); err != nil {
		t.Error(err)
	}
}

// TestRefused checks that a rejected caller gets the reason, and that nothing is left behind.
func TestRefused(t *testing.T) {
	h := newTestServer(t)
	for want, v := range map[string]Caller{
		"token_invalid":     {URL: h.url, Token: "forged", Clock: h.clock},
		"accepted are G722": h.caller("OPUS"),
		"socket: ":          {URL: "ws://127.0.0.1:1", Clock: h.clock},
	} {
		if _, err := v.Join(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestKernelClock checks that the arrival time of a packet comes from the kernel, not from the later read.
func TestKernelClock(t *testing.T) {
	s, err := listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	from, err := net.Dial("udp", s.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	b, late := make([]byte, mtu), time.Hour
	for n := byte(0); n < 20 && late > 20*time.Millisecond; n++ { // the kernel enables timestamps with a delay
		packet := []byte{0x80, 0, 1, n, 0, 0, 0, 0, 0, 0, 0, 5, 1, 2}
		if _, err = from.Write(packet); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		<-time.After(30 * time.Millisecond)
		if got, _, err := s.ReadFrom(b); err != nil || got != len(packet) {
			t.Fatal(got, err)
		}
		at, ok := s.came.of(5, 0x100+uint16(n))
		if !ok {
			t.Fatal("packet that was read: got no arrival")
		}
		late = at.Sub(sent)
	}
	if late > 20*time.Millisecond {
		t.Errorf("got an arrival %v after sending", late)
	}
	if _, ok := s.came.of(6, 0x100); ok {
		t.Error("other source: got an arrival, want none")
	}
}

func TestTimes(t *testing.T) {
	var x times
	at := time.Now()
	audio := func(seq byte) []byte { return []byte{0x80, 9, 0, seq, 0, 0, 0, 0, 0, 0, 0, 1} }
	x.keep(audio(1), at)
	report := audio(2)
	report[1] = 200 // a sender report (RFC 3550 section 6.4.1)
	x.keep(report, at)
	x.keep(audio(3)[:11], at)
	x.keep(append([]byte{22}, audio(4)[1:]...), at) // a packet of DTLS
	for seq, want := range map[uint16]bool{1: true, 2: false, 3: false, 4: false, 0: false} {
		if got, ok := x.of(1, seq); ok != want || ok && !got.Equal(at) {
			t.Errorf("packet %d: got %v", seq, ok)
		}
	}
	x.keep(append([]byte{0x80, 9, 2, 1}, audio(0)[4:]...), at.Add(time.Second)) // 512 packets later
	if _, ok := x.of(1, 1); ok {
		t.Error("packet beyond the limit is still recorded")
	}
}
