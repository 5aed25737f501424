package webcaller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	pionice "github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/receiver"
)

// A Leg is the caller's side of a web call. It is a media.Leg that knows when each frame arrived and left.
type Leg struct {
	socket *socket
	mux    *pionice.UDPMuxDefault
	pc     *webrtc.PeerConnection
	ws     *websocket.Conn // nil before the join
	codecs []codec.Codec   // in order of preference
	opened time.Time
	rate   int // Hz
	detach func()

	up, over chan struct{}
	keys     chan rune // never written to
	wake     chan struct{}
	tasks    sync.WaitGroup

	mu     sync.Mutex
	cause  media.Cause
	isUp   bool
	closed bool

	hears atomic.Bool
	ring  jitter.Ring // received packets
	// Only the goroutine that calls ReadFrame uses reader.
	reader   *receiver.Reader
	decoders decoders

	sender
}

func newLeg(s *socket, mux *pionice.UDPMuxDefault, pc *webrtc.PeerConnection, codecs []codec.Codec) *Leg {
	l := &Leg{
		socket: s, mux: mux, pc: pc, codecs: codecs, opened: time.Now(), up: make(chan struct{}), over: make(chan struct{}),
		keys: make(chan rune), wake: make(chan struct{}, 1), reader: receiver.New(), decoders: decoders{},
	}
	return l
}

// offer returns the SDP offer with all candidates.
func (l *Leg) offer(ctx context.Context) (string, error) {
	sender, err := l.pc.AddTrack(l)
	if err != nil {
		return "", fmt.Errorf("track: %w", err)
	}
	l.spawn(func() { drain(sender) })
	offer, err := l.pc.CreateOffer(nil)
	if err != nil {
		return "", fmt.Errorf("offer: %w", err)
	}
	gathered := webrtc.GatheringCompletePromise(l.pc)
	if err = l.pc.SetLocalDescription(offer); err != nil {
		return "", fmt.Errorf("offer: %w", err)
	}
	select {
	case <-gathered:
		return l.pc.LocalDescription().SDP, nil
	case <-ctx.Done():
		return "", fmt.Errorf("offer: %w", ctx.Err())
	}
}

// mtu is the length of the longest packet in bytes.
const mtu = 1500

// reports reads the RTCP reports of a track.
type reports interface {
	Read(b []byte) (int, interceptor.Attributes, error)
}

// drain reads RTCP and discards it. pion processes RTCP only when it is read.
func drain(from reports) {
	for b := make([]byte, mtu); ; {
		if _, _, err := from.Read(b); err != nil {
			return
		}
	}
}

// start starts media at the rate of the negotiated codec.
func (l *Leg) start(clock *mediaclock.Clock) {
	l.rate = codec.PCMU{}.Rate()
	if w := l.wire.Load(); w != nil {
		l.rate = w.codec.Rate()
	}
	l.frame = make(media.Frame, media.FrameLen(l.rate))
	for _, c := range l.codecs {
		l.decoders[c.PayloadType()] = codec.DecoderAt(c, l.rate)
	}
	l.reader.Start(l.rate, time.Since(l.opened))
	l.hears.Store(true)
	l.detach = clock.Add(l)
}

// onState handles a change of the connection state.
func (l *Leg) onState(s webrtc.PeerConnectionState) {
	switch s {
	case webrtc.PeerConnectionStateConnected:
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.isUp {
			l.isUp = true
			close(l.up)
		}
	case webrtc.PeerConnectionStateFailed:
		l.end(media.Failure)
	case webrtc.PeerConnectionStateClosed:
		l.end(media.RemoteHangup)
	case webrtc.PeerConnectionStateNew,
		webrtc.PeerConnectionStateConnecting,
		webrtc.PeerConnectionStateDisconnected,
		webrtc.PeerConnectionStateUnknown:
	}
}

// readMessages reads server messages until the socket closes.
func (l *Leg) readMessages(ws *websocket.Conn) {
	for {
		var m message
		if err := ws.ReadJSON(&m); err != nil {
			l.end(media.Failure)
			return
		}
		if m.Type == "bye" || m.Type == "error" {
			l.end(media.RemoteHangup)
			return
		}
	}
}

// spawn runs a task in a goroutine. Hangup waits for the task.
func (l *Leg) spawn(task func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.tasks.Go(task)
	}
}

// end ends the leg. Only the first cause counts.
func (l *Leg) end(c media.Cause) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == "" {
		l.cause = c
		close(l.over)
		close(l.keys)
	}
}

// Hangup implements media.Connection. It returns after all tasks of the leg have
// ended.
func (l *Leg) Hangup(c media.Cause) error {
	l.end(c)
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	if l.detach != nil {
		l.detach()
	}
	if l.ws != nil {
		_ = l.ws.WriteJSON(map[string]any{"type": "bye"}) // the server may have closed the socket
		_ = l.ws.Close()
	}
	_ = l.pc.Close() // the leg has ended
	err := l.mux.Close()
	l.tasks.Wait()
	return err
}

// Cause implements media.Connection.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Digits implements media.Leg.
func (l *Leg) Digits() <-chan rune { return l.keys }

// Rate implements media.Source.
func (l *Leg) Rate() int { return l.rate }

// Codec returns the negotiated codec for sending, or "".
func (l *Leg) Codec() string {
	if w := l.wire.Load(); w != nil {
		return w.codec.Name()
	}
	return ""
}

// Bind implements webrtc.TrackLocal. It selects the first of l.codecs that the server accepts.
func (l *Leg) Bind(t webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	for _, c := range l.codecs {
		for _, with := range t.CodecParameters() {
			if strings.EqualFold(with.MimeType, "audio/"+c.Name()) {
				l.wire.Store(&wire{t.WriteStream(), c, uint8(with.PayloadType), uint32(t.SSRC())})
				return with, nil
			}
		}
	}
	return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
}

// Unbind implements webrtc.TrackLocal.
func (l *Leg) Unbind(webrtc.TrackLocalContext) error { return nil }

// ID implements webrtc.TrackLocal.
func (l *Leg) ID() string { return "microphone" }

// RID implements webrtc.TrackLocal.
func (l *Leg) RID() string { return "" }

// StreamID implements webrtc.TrackLocal.
func (l *Leg) StreamID() string { return "visitor" }

// Kind implements webrtc.TrackLocal.
func (l *Leg) Kind() webrtc.RTPCodecType { return webrtc.RTPCodecTypeAudio }
