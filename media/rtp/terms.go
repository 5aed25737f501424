package rtp

import (
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/crypt"
	"github.com/parley-voice/parley/media/dtmf"
)

// terms are Params and what was made for them.
type terms struct {
	Params

	rate    int           // Hz, of frames
	ptime   time.Duration // in which we send
	encoder codec.Encoder // owned by the clock
	ear     *dtmf.Ear     // owned by the reader; nil where keys are no tones
	secret  bool          // nothing plain leaves or is heard
	seal    *crypt.Sealer // owned by the clock
	open    *crypt.Opener // owned by the clock

	means    meanings
	former   meanings // of the terms before
	decoders []hearing
}

// Rate implements media.Source. The first Start fixes it: 16000 where its
// codec is G.722, else 8000. It is 8000 before.
func (s *Session) Rate() int {
	if t := s.params.Load(); t != nil {
		return t.rate
	}
	return Rate
}

// Start begins to send and to hear, or goes on with other parameters from the
// next frame on. The codec of p must be set. Where it is another than before,
// and of another rate than the session's, it is resampled.
func (s *Session) Start(p Params) {
	s.start.Lock()
	defer s.start.Unlock()
	t := &terms{Params: p, rate: p.Codec.Rate(), ptime: packetTime(p.Ptime)}
	old := s.params.Load()
	if old != nil {
		t.rate = old.rate
	}
	if old != nil && old.Codec.Name() == p.Codec.Name() {
		t.encoder = old.encoder // what it learnt holds
	} else {
		t.encoder = codec.EncoderAt(p.Codec, t.rate)
	}
	t.mean(old)
	switch {
	case !p.InBand:
	case old != nil && old.ear != nil:
		t.ear = old.ear
	default:
		t.ear = dtmf.NewEar(t.rate)
	}
	t.encrypt(old)
	s.params.Store(t)
}

// encrypt makes the two ends of what is secret. A key that stays goes on where
// it was: its packets are counted (RFC 3711 section 3.3.1).
func (t *terms) encrypt(old *terms) {
	t.secret = t.Ours.Set() || t.Theirs.Set()
	if !t.secret {
		return
	}
	if old != nil && old.Ours.Equal(t.Ours) {
		t.seal = old.seal
	} else if seal, err := crypt.NewSealer(t.Ours); err == nil {
		t.seal = seal
	}
	if old != nil && old.Theirs.Equal(t.Theirs) {
		t.open = old.open
	} else if open, err := crypt.NewOpener(t.Theirs); err == nil {
		t.open = open
	}
}

// packetTime is in steps of half a frame, of which the longest packet has six.
func packetTime(wish time.Duration) time.Duration {
	const step, most, usual = 10 * time.Millisecond, 60 * time.Millisecond, 20 * time.Millisecond
	if wish < step {
		return usual
	}
	return min(wish, most).Truncate(step)
}
