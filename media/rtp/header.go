package rtp

import "encoding/binary"

const (
	headerLen = 12 // of a header without sources or extension (RFC 3550 section 5.1)
	maxPacket = 1500
)

// A packet is one RTP packet as it came in. Payload points into the buffer it
// was parsed from.
type packet struct {
	payload  []byte
	ts, ssrc uint32
	seq      uint16
	pt       uint8
	marker   bool
}

// parse reads an RTP packet. It refuses what is not version 2, what is cut
// short, and RTCP that came to the wrong port (RFC 5761 section 4).
func parse(b []byte) (packet, bool) {
	if len(b) < headerLen || b[0]>>6 != 2 || b[1] >= 192 && b[1] <= 223 {
		return packet{}, false
	}
	p := packet{
		marker: b[1]&0x80 != 0,
		pt:     b[1] & 0x7f,
		seq:    binary.BigEndian.Uint16(b[2:]),
		ts:     binary.BigEndian.Uint32(b[4:]),
		ssrc:   binary.BigEndian.Uint32(b[8:]),
	}
	from, to := headerLen+4*int(b[0]&15), len(b)
	if b[0]&0x10 != 0 { // header extension, RFC 3550 section 5.3.1
		if from+4 > to {
			return packet{}, false
		}
		from += 4 + 4*int(binary.BigEndian.Uint16(b[from+2:]))
	}
	if b[0]&0x20 != 0 { // padding: the last byte counts it, itself included
		pad := int(b[to-1])
		if pad == 0 {
			return packet{}, false
		}
		to -= pad
	}
	if from > to {
		return packet{}, false
	}
	p.payload = b[from:to]
	return p, true
}

// putHeader writes a plain header to b, which is headerLen long or longer.
func putHeader(b []byte, p packet) {
	b[0], b[1] = 0x80, p.pt
	if p.marker {
		b[1] |= 0x80
	}
	binary.BigEndian.PutUint16(b[2:], p.seq)
	binary.BigEndian.PutUint32(b[4:], p.ts)
	binary.BigEndian.PutUint32(b[8:], p.ssrc)
}
