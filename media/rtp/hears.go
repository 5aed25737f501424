package rtp

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/jitter"
)

// underway is how long packets of a payload type may still come after it was
// agreed on no more.
const underway = time.Second

// A meaning is what a payload type brings.
type meaning struct {
	agreed bool
	kind   jitter.Kind
	format uint8 // of speech: its place in terms.decoders
}

// meanings are those of all payload types.
type meanings [128]meaning

// A hearing decodes one codec. It is numbered by its place, for as long as the
// session lives: what waits for the reader may be in a codec of before.
type hearing struct {
	name    string
	decoder codec.Decoder // owned by the reader
}

// mean finds what each payload type brings. What old agreed on is kept, for
// what is under way.
func (t *terms) mean(old *terms) {
	if old != nil {
		t.decoders, t.former = slices.Clone(old.decoders), old.means
	}
	for _, m := range t.Others {
		t.means.set(m.PayloadType, meaning{true, jitter.Speech, t.format(m.Codec)})
	}
	t.means.set(comfortType, meaning{agreed: true, kind: jitter.Comfort})
	if t.ComfortType != 0 {
		t.means.set(t.ComfortType, meaning{agreed: true, kind: jitter.Comfort})
	}
	for _, pt := range []uint8{t.KeyAlias, t.KeyType} {
		if pt != 0 {
			t.means.set(pt, meaning{agreed: true, kind: jitter.Key})
		}
	}
	t.means.set(t.PayloadType, meaning{true, jitter.Speech, t.format(t.Codec)})
}

// set passes over what is no payload type.
func (m *meanings) set(pt uint8, what meaning) {
	if int(pt) < len(m) {
		m[pt] = what
	}
}

// format is the number of a codec.
func (t *terms) format(c codec.Codec) uint8 {
	n := slices.IndexFunc(t.decoders, func(h hearing) bool { return h.name == c.Name() })
	if n < 0 {
		n = len(t.decoders)
		t.decoders = append(t.decoders, hearing{c.Name(), codec.DecoderAt(c, t.rate)})
	}
	return uint8(n) //nolint:gosec // the house has a handful of codecs
}

// meaning says what a payload type brings. What was agreed on before is what
// it was, for so long as its packets may be under way.
func (r *receiver) meaning(t *terms, pt uint8, now time.Duration) meaning {
	m := t.means[pt&127]
	if !m.agreed && now-r.followed < underway {
		m = t.former[pt&127]
	}
	return m
}

// coming is the packet for the reader, of a payload that is what is says.
func (p *packet) coming(is meaning, at time.Duration) jitter.Packet {
	return jitter.Packet{
		At: at, Payload: p.payload, Stamp: p.ts, Source: p.ssrc, Seq: p.seq, Marker: p.marker, Kind: is.kind, Format: is.format,
	}
}

// DecodeAs implements stream.Decoder, at the session's rate.
func (s *Session) DecodeAs(dst []int16, payload []byte, format uint8) {
	if t := s.params.Load(); t != nil && int(format) < len(t.decoders) {
		t.decoders[format].decoder.Decode(dst, payload)
	}
}
