package rtp

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/jitter"
)

// oldTypesFor is how long packets may still use payload types that are no longer negotiated.
const oldTypesFor = time.Second

type payloadKind struct {
	agreed bool
	kind   jitter.Kind
	format uint8 // for speech: index in activeParams.decoders
}

type payloadKinds [128]payloadKind

// formatDecoder decodes one codec. Its index stays valid for the whole session, because packets in the queue may use
// an earlier codec.
type formatDecoder struct {
	name    string
	decoder codec.Decoder // only the reader uses it
}

// mapTypes sets the meaning of each payload type. It keeps the types of old, because packets that use them may still
// arrive.
func (t *activeParams) mapTypes(old *activeParams) {
	if old != nil {
		t.decoders, t.oldTypes = slices.Clone(old.decoders), old.types
	}
	for _, m := range t.Others {
		t.types.set(m.PayloadType, payloadKind{true, jitter.Speech, t.format(m.Codec)})
	}
	t.types.set(comfortType, payloadKind{agreed: true, kind: jitter.Comfort})
	if t.ComfortType != 0 {
		t.types.set(t.ComfortType, payloadKind{agreed: true, kind: jitter.Comfort})
	}
	for _, pt := range []uint8{t.KeyAlias, t.KeyType} {
		if pt != 0 {
			t.types.set(pt, payloadKind{agreed: true, kind: jitter.Key})
		}
	}
	t.types.set(t.PayloadType, payloadKind{true, jitter.Speech, t.format(t.Codec)})
}

// set sets the kind of a payload type. It ignores invalid types.
func (m *payloadKinds) set(pt uint8, kind payloadKind) {
	if int(pt) < len(m) {
		m[pt] = kind
	}
}

func (t *activeParams) format(c codec.Codec) uint8 {
	n := slices.IndexFunc(t.decoders, func(h formatDecoder) bool { return h.name == c.Name() })
	if n < 0 {
		n = len(t.decoders)
		t.decoders = append(t.decoders, formatDecoder{c.Name(), codec.DecoderAt(c, t.rate)})
	}
	return uint8(n) //nolint:gosec // only a few codecs exist
}

// kindOf returns the kind of a payload type. The previous types are valid for oldTypesFor.
func (r *incoming) kindOf(t *activeParams, pt uint8, now time.Duration) payloadKind {
	m := t.types[pt&127]
	if !m.agreed && now-r.paramsAt < oldTypesFor {
		m = t.oldTypes[pt&127]
	}
	return m
}

func (p *packet) forReader(kind payloadKind, at time.Duration) jitter.Packet {
	return jitter.Packet{
		At: at, Payload: p.payload, Timestamp: p.ts, SSRC: p.ssrc, Seq: p.seq, Marker: p.marker, Kind: kind.kind, Format: kind.format,
	}
}

// DecodeAs implements receiver.Decoder. It decodes to the sample rate of the session.
func (s *Session) DecodeAs(dst []int16, payload []byte, format uint8) {
	if t := s.params.Load(); t != nil && int(format) < len(t.decoders) {
		t.decoders[format].decoder.Decode(dst, payload)
	}
}
