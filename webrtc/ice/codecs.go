package ice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"

	"github.com/pion/webrtc/v4"
)

// newMediaEngine lists the codecs that can be received, preferred first. The
// first of them that can be encoded is sent: G.722, else G.711. Opus parameters ask for
// speech quality and no discontinuous transmission.
func newMediaEngine() (*webrtc.MediaEngine, error) {
	m := &webrtc.MediaEngine{}
	for _, c := range []webrtc.RTPCodecParameters{
		{RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2,
			SDPFmtpLine: "minptime=10;useinbandfec=0;usedtx=0;stereo=0;maxaveragebitrate=32000;maxptime=60",
		}, PayloadType: 111},
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeG722, ClockRate: 8000}, PayloadType: 9},
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000}, PayloadType: 0},
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMA, ClockRate: 8000}, PayloadType: 8},
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: mimeTypeKeys, ClockRate: 48000, SDPFmtpLine: "0-15"}, PayloadType: 110},
		{RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: mimeTypeKeys, ClockRate: 8000, SDPFmtpLine: "0-15"}, PayloadType: 126},
	} {
		if err := m.RegisterCodec(c, webrtc.RTPCodecTypeAudio); err != nil {
			return nil, fmt.Errorf("codecs: %w", err)
		}
	}
	return m, nil
}

// mimeTypeKeys is the type of telephone events (RFC 4733).
const mimeTypeKeys = "audio/telephone-event"

// newCertificate creates the endpoint's certificate, valid for a month less a
// day. One per call would dominate the cost of call setup.
func newCertificate() (webrtc.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return webrtc.Certificate{}, fmt.Errorf("certificate: %w", err)
	}
	c, err := webrtc.GenerateCertificate(key)
	if err != nil {
		return webrtc.Certificate{}, fmt.Errorf("certificate: %w", err)
	}
	return *c, nil
}
