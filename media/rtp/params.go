package rtp

import (
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/srtp"
)

// activeParams holds Params and values that are derived from them.
type activeParams struct {
	Params

	rate      int             // sample rate of frames in Hz
	ptime     time.Duration   // packet time of the audio that is sent
	encoder   codec.Encoder   // only the clock uses it
	detector  *dtmf.Detector  // only the reader uses it; nil without in-band DTMF
	encrypted bool            // only encrypted packets are sent and accepted
	encrypter *srtp.Encrypter // only the clock uses it
	decrypter *srtp.Decrypter // only the clock uses it

	types    payloadKinds
	oldTypes payloadKinds // payload types of the previous parameters
	decoders []formatDecoder
}

// Rate implements media.Source. It is 8000 before the first Start. The first Start fixes it: 16000 for G.722, and
// 8000 otherwise.
func (s *Session) Rate() int {
	if t := s.params.Load(); t != nil {
		return t.rate
	}
	return Rate
}

// Start begins to send and receive. Further calls change the parameters from the next frame on. p.Codec must be set. If
// a later codec has another rate than the session, the audio is resampled.
func (s *Session) Start(p Params) {
	s.start.Lock()
	defer s.start.Unlock()
	t := &activeParams{Params: p, rate: p.Codec.Rate(), ptime: packetTime(p.Ptime)}
	old := s.params.Load()
	if old != nil {
		t.rate = old.rate
	}
	if old != nil && old.Codec.Name() == p.Codec.Name() {
		t.encoder = old.encoder // keeps the encoder's adaptive state
	} else {
		t.encoder = codec.EncoderAt(p.Codec, t.rate)
	}
	t.mapTypes(old)
	switch {
	case !p.InBand:
	case old != nil && old.detector != nil:
		t.detector = old.detector
	default:
		t.detector = dtmf.NewDetector(t.rate)
	}
	t.setKeys(old)
	s.params.Store(t)
}

// setKeys creates the SRTP contexts. If a key has not changed, its context and packet counters are kept (RFC 3711
// section 3.3.1).
func (t *activeParams) setKeys(old *activeParams) {
	t.encrypted = t.LocalKey.IsSet() || t.RemoteKey.IsSet()
	if !t.encrypted {
		return
	}
	if old != nil && old.LocalKey.Equal(t.LocalKey) {
		t.encrypter = old.encrypter
	} else if encrypter, err := srtp.NewEncrypter(t.LocalKey); err == nil {
		t.encrypter = encrypter
	}
	if old != nil && old.RemoteKey.Equal(t.RemoteKey) {
		t.decrypter = old.decrypter
	} else if decrypter, err := srtp.NewDecrypter(t.RemoteKey); err == nil {
		t.decrypter = decrypter
	}
}

// packetTime returns the requested packet time, rounded down to a multiple of 10 ms and at most 60 ms. For less than
// 10 ms it returns 20 ms.
func packetTime(requested time.Duration) time.Duration {
	const step, longest, standard = 10 * time.Millisecond, 60 * time.Millisecond, 20 * time.Millisecond
	if requested < step {
		return standard
	}
	return min(requested, longest).Truncate(step)
}
