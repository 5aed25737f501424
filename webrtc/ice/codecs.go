package ice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"

	"github.com/pion/webrtc/v4"
)

// newMediaEngine registers the codecs that can be received, in the order of preference. Sent audio uses the first of
// them that both sides support and this build can encode. The Opus parameters ask for speech quality and no
// discontinuous transmission.
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

// newCertificate creates the endpoint's certificate, which is valid for a month minus a day. Calls share it, because
// creating a certificate for each call would dominate the cost of call setup.
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
