package rtp

import (
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/srtp"
)

// activeParams are Params and the state derived from them.
type activeParams struct {
	Params

	rate      int             // frame rate in Hz
	ptime     time.Duration   // packet time of sent audio
	encoder   codec.Encoder   // owned by the clock
	detector  *dtmf.Detector  // owned by the reader; nil without in-band DTMF
	encrypted bool            // unencrypted packets are neither sent nor accepted
	encrypter *srtp.Encrypter // owned by the clock
	decrypter *srtp.Decrypter // owned by the clock

	types    payloadKinds
	oldTypes payloadKinds // of the previous parameters
	decoders []formatDecoder
}

// Rate implements media.Source. The first Start fixes it: 16000 for G.722,
// else 8000. Before Start it is 8000.
func (s *Session) Rate() int {
	if t := s.params.Load(); t != nil {
		return t.rate
	}
	return Rate
}

// Start begins to send and receive, or changes parameters from the next frame
// on. p.Codec must be set. Audio is resampled if a later codec has another
// rate than the session.
func (s *Session) Start(p Params) {
	s.start.Lock()
	defer s.start.Unlock()
	t := &activeParams{Params: p, rate: p.Codec.Rate(), ptime: packetTime(p.Ptime)}
	old := s.params.Load()
	if old != nil {
		t.rate = old.rate
	}
	if old != nil && old.Codec.Name() == p.Codec.Name() {
		t.encoder = old.encoder // keeps its adaptive state
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

// setKeys creates the SRTP contexts. An unchanged key keeps its context and
// packet counters (RFC 3711 section 3.3.1).
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

// packetTime returns a supported packet time: a multiple of 10 ms, at most 60
// ms.
func packetTime(requested time.Duration) time.Duration {
	const step, longest, standard = 10 * time.Millisecond, 60 * time.Millisecond, 20 * time.Millisecond
	if requested < step {
		return standard
	}
	return min(requested, longest).Truncate(step)
}
