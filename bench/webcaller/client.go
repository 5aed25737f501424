// Package webcaller places web calls like a web page does, on a "parley serve" of its own: it
// gets a token over HTTP, then uses WebSocket and WebRTC. It timestamps the audio of both
// directions at its own socket. It shares no code with the server's side of web calls, so both
// sides cannot have the same error.
package webcaller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	pionice "github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/webrtc/ice"
)

// A Caller joins a web call.
type Caller struct {
	URL, Token string // URL of the WebSocket, as POST /v1/calls/web returned it
	// Codecs are the offered codecs in order of preference; none means all of Codecs().
	Codecs []string
	Clock  *mediaclock.Clock
}

// Codecs returns the supported codecs in order of preference.
func Codecs() []string { return []string{"G722", "PCMU", "PCMA"} }

// joining is the timeout of Join.
const joining = 15 * time.Second

// Join joins the call and returns when media can flow. The caller must hang up
// the leg.
func (v Caller) Join(ctx context.Context) (*Leg, error) {
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	l, err := v.open()
	if err != nil {
		return nil, err
	}
	if err = v.join(ctx, l); err != nil {
		return nil, errors.Join(err, l.Hangup(media.Failure))
	}
	l.start(v.Clock)
	return l, nil
}

// join negotiates media and waits until media can flow.
func (v Caller) join(ctx context.Context, l *Leg) error {
	offer, err := l.offer(ctx)
	if err != nil {
		return err
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, v.URL, http.Header{})
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	_ = resp.Body.Close() // the response to a WebSocket upgrade has no body
	l.ws = ws
	if until, ok := ctx.Deadline(); ok {
		_ = ws.SetReadDeadline(until) // on an error, the next read fails too
	}
	if err = ws.WriteJSON(map[string]any{"type": "join", "token": v.Token, "sdp": offer}); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	var first message
	if err = ws.ReadJSON(&first); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if first.Type != "answer" {
		return fmt.Errorf("join: refused: %s: %s", first.Code, first.Message)
	}
	_ = ws.SetReadDeadline(time.Time{})
	l.spawn(func() { l.readMessages(ws) })
	if err = l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: first.SDP}); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	select {
	case <-l.up:
		return nil
	case <-l.over:
		return errors.New("the call ended before media started")
	case <-ctx.Done():
		return fmt.Errorf("media: %w", ctx.Err())
	}
}

// A message holds the fields of a server message that this package uses.
type message struct {
	Type    string `json:"type"`
	SDP     string `json:"sdp"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// open creates a leg.
func (v Caller) open() (*Leg, error) {
	names := v.Codecs
	if len(names) == 0 {
		names = Codecs()
	}
	var codecs []codec.Codec
	for _, name := range names {
		c, ok := codec.ByName(name)
		if !ok || !slices.Contains(Codecs(), c.Name()) {
			return nil, fmt.Errorf("codec %q: accepted are %s", name, strings.Join(Codecs(), ", "))
		}
		codecs = append(codecs, c)
	}
	s, err := listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		return nil, err
	}
	mux := pionice.NewUDPMuxDefault(pionice.UDPMuxParams{UDPConn: s, Logger: ice.Logger(nil).NewLogger("ice")})
	pc, err := connection(mux, codecs)
	if err != nil {
		return nil, errors.Join(err, mux.Close())
	}
	l := newLeg(s, mux, pc, codecs)
	pc.OnTrack(l.track)
	pc.OnConnectionStateChange(l.onState)
	return l, nil
}

// connection creates a peer connection on a socket.
func connection(mux pionice.UDPMux, codecs []codec.Codec) (*webrtc.PeerConnection, error) {
	settings := webrtc.SettingEngine{LoggerFactory: ice.Logger(nil)}
	settings.SetICEUDPMux(mux)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(pionice.MulticastDNSModeDisabled)
	engine := &webrtc.MediaEngine{}
	for _, c := range codecs {
		err := engine.RegisterCodec(webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{
				MimeType:  "audio/" + c.Name(),
				ClockRate: uint32(c.ClockRate()), //nolint:gosec // positive
			},
			PayloadType: webrtc.PayloadType(c.PayloadType()),
		}, webrtc.RTPCodecTypeAudio)
		if err != nil {
			return nil, fmt.Errorf("codec %s: %w", c.Name(), err)
		}
	}
	reports := &interceptor.Registry{}
	if err := webrtc.ConfigureRTCPReports(reports); err != nil {
		return nil, fmt.Errorf("reports: %w", err)
	}
	api := webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(reports))
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, fmt.Errorf("peer connection: %w", err)
	}
	return pc, nil
}
