package rtp

import (
	"github.com/pion/rtp"
)

const (
	headerLen = 12 // length of a header without CSRCs and extension (RFC 3550 section 5.1)
)

// packet is an RTP packet. Its payload points into the receive buffer.
type packet struct {
	payload  []byte
	ts, ssrc uint32
	seq      uint16
	pt       uint8
	marker   bool
}

// parse reads an RTP packet, using h for the header. It rejects other versions, truncated packets, and RTCP (RFC 5761
// section 4).
func parse(h *rtp.Header, b []byte) (packet, bool) {
	if len(b) < headerLen || b[0]>>6 != 2 || b[1] >= 192 && b[1] <= 223 {
		return packet{}, false // rejects most invalid packets without parsing
	}
	from, err := h.Unmarshal(b)
	if err != nil {
		return packet{}, false
	}
	to := len(b)
	if h.Padding { // the last byte is the number of padding bytes, itself included
		pad := int(b[to-1])
		if pad == 0 {
			return packet{}, false
		}
		to -= pad
	}
	if from > to {
		return packet{}, false
	}
	return packet{
		payload: b[from:to], ts: h.Timestamp, ssrc: h.SSRC, seq: h.SequenceNumber, pt: h.PayloadType, marker: h.Marker,
	}, true
}

// putHeader writes a header without extensions to b, which must have at least headerLen bytes.
func putHeader(b []byte, p packet) {
	h := rtp.Header{
		Version: 2, Marker: p.marker, PayloadType: p.pt, SequenceNumber: p.seq, Timestamp: p.ts, SSRC: p.ssrc,
	}
	_, _ = h.MarshalTo(b) // fails only if b is too short
}
