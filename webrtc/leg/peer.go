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

// gatherFor bounds the gathering of our candidates, which are those of sockets
// that are open.
const gatherFor = 2 * time.Second

// mostLines is how many media an offer may have; all but one of audio are refused.
const mostLines = 8

// A peer is one peer connection.
type peer struct {
	leg   *Leg
	pc    *webrtc.PeerConnection
	said  atomic.Pointer[wire]
	named int // candidates of its description; guarded by the leg's mu
}

// A wire is where what is said goes.
type wire struct {
	stream      webrtc.TrackLocalWriter
	saying      saying
	payloadType uint8
	ssrc        uint32
}

// A saying is a way to say frames.
type saying struct {
	name    string // of its codec
	ticks   uint32 // of its clock, a tick of the sender's
	encoder func() codec.Encoder
}

// sayings are those that we can, the best first.
func sayings() []saying {
	all := []saying{{"opus", 48000 / clockRate, opus.NewEncoder}}
	if !opus.Encodes {
		all = nil
	}
	for _, c := range []codec.Codec{codec.G722{}, codec.PCMU{}, codec.PCMA{}} {
		all = append(all, saying{c.Name(), 1, func() codec.Encoder { return codec.EncoderAt(c, Rate) }})
	}
	return all
}

func (p *peer) wire() *wire { return p.said.Load() }

// connect makes a peer connection that has heard nothing of the party yet.
func (l *Leg) connect() (*peer, error) {
	pc, err := l.Connector.Connect()
	if err != nil {
		return nil, fmt.Errorf("peer connection: %w", err)
	}
	p := &peer{leg: l, pc: pc}
	pc.OnTrack(p.track)
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		l.Log.Debug("peer connection", "state", s.String())
		switch s {
		case webrtc.PeerConnectionStateConnected:
			l.connected(p, true)
		case webrtc.PeerConnectionStateDisconnected, webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			l.connected(p, false)
		case webrtc.PeerConnectionStateNew, webrtc.PeerConnectionStateConnecting, webrtc.PeerConnectionStateUnknown:
		}
	})
	l.spawn(p.consents)
	return p, nil
}

// answer answers an offer, with all candidates of ours.
func (p *peer) answer(ctx context.Context, offer string) (string, error) {
	offer, err := p.sift(offer, time.Now())
	if err == nil {
		err = p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer})
	}
	if err != nil {
		return "", &OfferError{"the offer cannot be read"}
	}
	if len(p.pc.GetSenders()) == 0 || p.pc.GetSenders()[0].Track() == nil {
		sender, fault := p.pc.AddTrack(p)
		if fault != nil {
			return "", fmt.Errorf("track: %w", fault)
		}
		p.leg.spawn(func() { p.reports(sender) })
	}
	answer, err := p.pc.CreateAnswer(nil)
	if err != nil {
		return "", &OfferError{"the offer cannot be answered"}
	}
	described, err := p.describe(ctx, answer)
	if errors.Is(err, webrtc.ErrUnsupportedCodec) {
		return "", &OfferError{"it has no codec of ours; accepted: G722, PCMU or PCMA to hear us by"}
	}
	if err != nil && ctx.Err() == nil {
		return "", &OfferError{"the offer cannot be answered"}
	}
	return described, err
}

// describe sets our description and returns it with all candidates of ours.
func (p *peer) describe(ctx context.Context, ours webrtc.SessionDescription) (string, error) {
	gathered := webrtc.GatheringCompletePromise(p.pc)
	if err := p.pc.SetLocalDescription(ours); err != nil {
		return "", err
	}
	late := time.NewTimer(gatherFor)
	defer late.Stop()
	select {
	case <-gathered:
	case <-late.C:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return p.pc.LocalDescription().SDP, nil
}

// spawn runs a task that the leg waits for. It is false where the leg is over.
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

// track hears what the party sends, until the connection is closed.
func (p *peer) track(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	if t.Kind() != webrtc.RTPCodecTypeAudio {
		return
	}
	p.leg.spawn(func() { p.listen(t, r) })
	p.leg.spawn(func() { // the reports of the party are read for those that we send
		for b := make([]byte, mtu); ; {
			if _, _, err := r.Read(b); err != nil {
				return
			}
		}
	})
}

const mtu = 1500

// A sort is what a payload type brings.
type sort struct {
	codec  string
	format uint8
	rate   int64 // 0: nothing of ours
}

func (p *peer) listen(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	var sorts [128]sort
	for _, c := range r.GetParameters().Codecs {
		_, name, _ := strings.Cut(c.MimeType, "/")
		if f, ok := formatOf(name); ok && c.PayloadType < 128 {
			sorts[c.PayloadType] = sort{name, f, int64(c.ClockRate)}
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
		is := sorts[h.PayloadType&127]
		if end < begin || is.rate == 0 {
			continue
		}
		if is.format == formatKey {
			p.leg.key(&h, b[begin:end], is.rate, at)
			continue
		}
		p.leg.hear(incoming{header: &h, payload: b[begin:end], codec: is.codec, format: is.format, rate: is.rate}, at)
	}
}

// Bind implements webrtc.TrackLocal: the best codec of ours that the party can
// hear.
func (p *peer) Bind(t webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	for _, s := range sayings() {
		for _, with := range t.CodecParameters() {
			if strings.EqualFold(with.MimeType, "audio/"+s.name) {
				p.said.Store(&wire{t.WriteStream(), s, uint8(with.PayloadType), uint32(t.SSRC())})
				return with, nil
			}
		}
	}
	return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
}

// Unbind implements webrtc.TrackLocal.
func (p *peer) Unbind(webrtc.TrackLocalContext) error { return nil }

// ID implements webrtc.TrackLocal.
func (p *peer) ID() string { return "agent" }

// RID implements webrtc.TrackLocal.
func (p *peer) RID() string { return "" }

// StreamID implements webrtc.TrackLocal.
func (p *peer) StreamID() string { return "parley" }

// Kind implements webrtc.TrackLocal.
func (p *peer) Kind() webrtc.RTPCodecType { return webrtc.RTPCodecTypeAudio }

// check refuses an offer that is not one of a call.
func check(offer string) error {
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
			return &OfferError{"it has something else than audio; accepted: one m=audio"}
		}
	}
	if audio != 1 || lines > mostLines {
		return &OfferError{"accepted: one m=audio"}
	}
	return nil
}

// fingerprint is the certificate that a description pins (RFC 8122).
func fingerprint(sdp string) string {
	for line := range strings.Lines(sdp) {
		if f, ok := strings.CutPrefix(line, "a=fingerprint:"); ok {
			return strings.ToLower(strings.TrimSpace(f))
		}
	}
	return ""
}
