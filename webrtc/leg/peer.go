package leg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/opus"
)

// gatherTimeout limits the gathering of local candidates. It is short, because the sockets are already open.
const gatherTimeout = 2 * time.Second

// maxMediaLines is the maximum number of media lines in an offer. All except one audio stream are rejected.
const maxMediaLines = 8

type peer struct {
	leg        *Leg
	pc         *webrtc.PeerConnection
	out        atomic.Pointer[outTrack]
	candidates int // remote candidates that were accepted; guarded by leg.mu
}

type outTrack struct {
	stream      webrtc.TrackLocalWriter
	codec       sendCodec
	payloadType uint8
	ssrc        uint32
}

type sendCodec struct {
	name    string // name of the encoding
	ticks   uint32 // ticks of the codec's clock per tick of the sender's clock
	encoder func() codec.Encoder
}

// sendCodecs returns the codecs that can be sent, in the order of preference.
func sendCodecs() []sendCodec {
	all := []sendCodec{{"opus", 48000 / clockRate, opus.NewEncoder}}
	if !opus.CanEncode {
		all = nil
	}
	for _, c := range []codec.Codec{codec.G722{}, codec.PCMU{}, codec.PCMA{}} {
		all = append(all, sendCodec{c.Name(), 1, func() codec.Encoder { return codec.EncoderAt(c, Rate) }})
	}
	return all
}

// connect creates a peer connection without a remote description.
func (l *Leg) connect() (*peer, error) {
	pc, err := l.Connector.Connect()
	if err != nil {
		return nil, fmt.Errorf("peer connection: %w", err)
	}
	p := &peer{leg: l, pc: pc}
	pc.OnTrack(p.onTrack)
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		l.Log.Debug("peer connection", "state", s.String())
		switch s {
		case webrtc.PeerConnectionStateConnected:
			l.onConnection(p, true)
		case webrtc.PeerConnectionStateDisconnected, webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			l.onConnection(p, false)
		case webrtc.PeerConnectionStateNew, webrtc.PeerConnectionStateConnecting, webrtc.PeerConnectionStateUnknown:
		}
	})
	l.spawn(p.watchConsent)
	return p, nil
}

// answer returns the answer to an offer, with all local candidates.
func (p *peer) answer(ctx context.Context, offer string) (string, error) {
	offer, err := p.filterCandidates(offer, time.Now())
	if err == nil {
		err = p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer})
	}
	if err != nil {
		return "", &OfferError{"the offer cannot be read"}
	}
	if len(p.pc.GetSenders()) == 0 || p.pc.GetSenders()[0].Track() == nil {
		sender, trackErr := p.pc.AddTrack(p)
		if trackErr != nil {
			return "", fmt.Errorf("track: %w", trackErr)
		}
		p.leg.spawn(func() { p.readReports(sender) })
	}
	answer, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return "", &OfferError{"the offer cannot be answered"}
	}
	described, err := p.describe(ctx, answer)
	if errors.Is(err, webrtc.ErrUnsupportedCodec) {
		return "", &OfferError{"no common codec; accepted: G722, PCMU or PCMA"}
	}
	if err != nil && ctx.Err() == nil {
		return "", &OfferError{"the offer cannot be answered"}
	}
	return described, err
}

func (p *peer) describe(ctx context.Context, description webrtc.SessionDescription) (string, error) {
	gathered := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(description); err != nil {
		return "", err
	}
	late := time.NewTimer(gatherTimeout)
	defer late.Stop()
	select {
	case <-gathered:
	case <-late.C:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return p.pc.LocalDescription().SDP, nil
}

// spawn starts a task for which Hangup waits. If the leg has ended, it returns false and does not start the task.
func (l *Leg) spawn(task func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != "" {
		return false
	}
	l.tasks.Go(task)
	return true
}

func (p *peer) close(log *slog.Logger) {
	if err := p.pc.Close(); err != nil {
		log.Debug("peer connection", "err", err)
	}
}

func (p *peer) onTrack(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	if t.Kind() != webrtc.RTPCodecTypeAudio {
		return
	}
	p.leg.spawn(func() { p.listen(t, r) })
	p.leg.spawn(func() { // RTCP must be read, because reading updates the statistics of sent reports
		for b := make([]byte, mtu); ; {
			if _, _, err := r.Read(b); err != nil {
				return
			}
		}
	})
}

const mtu = 1500

type payloadKind struct {
	codec  string
	format uint8
	rate   int64 // 0 if the codec is not supported
}

func (p *peer) listen(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	var kinds [128]payloadKind
	for _, c := range r.GetParameters().Codecs {
		_, name, _ := strings.Cut(c.MimeType, "/")
		if f, ok := formatOf(name); ok && c.PayloadType < 128 {
			kinds[c.PayloadType] = payloadKind{name, f, int64(c.ClockRate)}
		}
	}
	b := make([]byte, mtu)
	var h rtp.Header
	for {
		n, _, err := t.Read(b)
		if err != nil {
			return
		}
		at := time.Now()
		begin, err := h.Unmarshal(b[:n])
		if err != nil {
			continue
		}
		end := n
		if h.Padding && n > begin {
			end -= int(b[n-1])
		}
		kind := kinds[h.PayloadType&127]
		if end < begin || kind.rate == 0 {
			continue
		}
		if kind.format == formatKey {
			p.leg.receiveKey(&h, b[begin:end], kind.rate, at)
			continue
		}
		p.leg.receive(incoming{header: &h, payload: b[begin:end], codec: kind.codec, format: kind.format, rate: kind.rate}, at)
	}
}

// Bind implements webrtc.TrackLocal. It selects the first of sendCodecs that the remote party can receive.
func (p *peer) Bind(t webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	for _, s := range sendCodecs() {
		for _, params := range t.CodecParameters() {
			if strings.EqualFold(params.MimeType, "audio/"+s.name) {
				p.out.Store(&outTrack{t.WriteStream(), s, uint8(params.PayloadType), uint32(t.SSRC())})
				return params, nil
			}
		}
	}
	return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
}

func (p *peer) Unbind(webrtc.TrackLocalContext) error { return nil }

func (p *peer) ID() string { return "agent" }

func (p *peer) RID() string { return "" }

func (p *peer) StreamID() string { return "parley" }

func (p *peer) Kind() webrtc.RTPCodecType { return webrtc.RTPCodecTypeAudio }

func checkOffer(offer string) error {
	audio, lines := 0, 0
	for line := range strings.Lines(offer) {
		if !strings.HasPrefix(line, "m=") {
			continue
		}
		lines++
		switch {
		case strings.HasPrefix(line, "m=audio "):
			audio++
		case strings.HasPrefix(line, "m=video "):
		default:
			return &OfferError{"unsupported media; accepted: one m=audio"}
		}
	}
	if audio != 1 || lines > maxMediaLines {
		return &OfferError{"one m=audio is required"}
	}
	return nil
}

// fingerprint returns the certificate fingerprint of a description (RFC 8122).
func fingerprint(sdp string) string {
	for line := range strings.Lines(sdp) {
		if f, ok := strings.CutPrefix(line, "a=fingerprint:"); ok {
			return strings.ToLower(strings.TrimSpace(f))
		}
	}
	return ""
}
