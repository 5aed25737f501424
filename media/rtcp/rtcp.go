// Package rtcp reports how audio travels (RFC 3550 section 6). It is pure:
// nothing here knows the network or what time it is, and nothing allocates.
package rtcp

import (
	"encoding/binary"
	"errors"
	"time"
)

// Packet types (RFC 3550 section 12.1).
const (
	typeSender   = 200
	typeReceiver = 201
	typeSource   = 202
	typeBye      = 203
)

const (
	headLen   = 4
	senderLen = 20
	blockLen  = 24
	cname     = 1
)

// MaxLen is the most that Append writes for a name of 32 bytes.
const MaxLen = headLen + 4 + senderLen + blockLen + (headLen + 4 + 2 + 32 + 4) + (headLen + 4)

// ErrMalformed is returned for what is no compound packet (RFC 3550 appendix
// A.2).
var ErrMalformed = errors.New("malformed rtcp packet")

// A Sending is what a sender tells of its stream.
type Sending struct {
	NTP             uint64 // when (RFC 3550 section 4)
	RTP             uint32 // timestamp of that moment
	Packets, Octets uint32
}

// A Block is what a receiver tells of a stream.
type Block struct {
	SSRC     uint32 // of the stream
	Fraction uint8  // of packets lost since the report before, of 256
	Lost     int64  // packets so far, fewer than none where some came twice
	Highest  uint32 // sequence number, extended
	Jitter   uint32 // ticks of the RTP clock
	LastSR   uint32 // middle of the NTP time of the last sender report; 0 none
	Delay    uint32 // since that came, of 65536 a second
}

// A Report is one compound packet.
type Report struct {
	SSRC    uint32 // of who reports
	Sends   bool   // Sending is there
	Sending Sending
	Hears   bool // Block is there
	Block   Block
	Bye     bool // the source leaves
}

// Append writes the report with the canonical name of its source, which has 32
// bytes at most.
func (r *Report) Append(b []byte, name string) []byte {
	kind, words := uint8(typeReceiver), 1
	if r.Sends {
		kind, words = typeSender, words+senderLen/4
	}
	blocks := uint8(0)
	if r.Hears {
		blocks, words = 1, words+blockLen/4
	}
	b = head(b, blocks, kind, words)
	b = binary.BigEndian.AppendUint32(b, r.SSRC)
	if r.Sends {
		b = binary.BigEndian.AppendUint64(b, r.Sending.NTP)
		b = binary.BigEndian.AppendUint32(b, r.Sending.RTP)
		b = binary.BigEndian.AppendUint32(b, r.Sending.Packets)
		b = binary.BigEndian.AppendUint32(b, r.Sending.Octets)
	}
	if r.Hears {
		k := &r.Block
		b = binary.BigEndian.AppendUint32(b, k.SSRC)
		b = binary.BigEndian.AppendUint32(b, uint32(k.Fraction)<<24|uint32(k.Lost)&0xffffff) //nolint:gosec // the low 24 bits
		b = binary.BigEndian.AppendUint32(b, k.Highest)
		b = binary.BigEndian.AppendUint32(b, k.Jitter)
		b = binary.BigEndian.AppendUint32(b, k.LastSR)
		b = binary.BigEndian.AppendUint32(b, k.Delay)
	}
	item := 4 + 2 + len(name)
	pad := 4 - item%4 // one zero at least ends the items (section 6.5)
	b = head(b, 1, typeSource, (item+pad)/4)
	b = binary.BigEndian.AppendUint32(b, r.SSRC)
	b = append(b, cname, uint8(len(name))) //nolint:gosec // 32 at most
	b = append(b, name...)
	b = append(b, "\x00\x00\x00\x00"[:pad]...)
	if r.Bye {
		b = head(b, 1, typeBye, 1)
		b = binary.BigEndian.AppendUint32(b, r.SSRC)
	}
	return b
}

func head(b []byte, count, kind uint8, words int) []byte {
	return append(b, 2<<6|count, kind, byte(words>>8), byte(words)) //nolint:gosec // a length of 16 bits
}

// Parse reads a compound packet. Of its blocks it returns the one about the
// stream ours.
func Parse(b []byte, ours uint32) (Report, error) {
	var r Report
	if len(b) == 0 {
		return r, ErrMalformed
	}
	for first := true; len(b) > 0; first = false {
		if len(b) < headLen || b[0]>>6 != 2 {
			return Report{}, ErrMalformed
		}
		n := headLen + 4*int(binary.BigEndian.Uint16(b[2:]))
		report := b[1] == typeSender || b[1] == typeReceiver
		if n > len(b) || first && (!report || b[0]&0x20 != 0) {
			return Report{}, ErrMalformed
		}
		body := b[headLen:n]
		switch {
		case report:
			if !r.read(b[1], int(b[0]&31), body, ours, first) {
				return Report{}, ErrMalformed
			}
		case b[1] == typeBye:
			if !r.leave(int(b[0]&31), body) {
				return Report{}, ErrMalformed
			}
		}
		b = b[n:]
	}
	return r, nil
}

// leave reads who says goodbye.
func (r *Report) leave(sources int, body []byte) bool {
	if 4*sources > len(body) {
		return false
	}
	for i := range sources {
		r.Bye = r.Bye || binary.BigEndian.Uint32(body[4*i:]) == r.SSRC
	}
	return true
}

// read reads a sender's or a receiver's report.
func (r *Report) read(kind uint8, blocks int, body []byte, ours uint32, first bool) bool {
	fixed := 4
	if kind == typeSender {
		fixed += senderLen
	}
	if len(body) < fixed+blocks*blockLen {
		return false
	}
	if first {
		r.SSRC = binary.BigEndian.Uint32(body)
	}
	if kind == typeSender && first {
		r.Sends = true
		r.Sending = Sending{
			NTP: binary.BigEndian.Uint64(body[4:]), RTP: binary.BigEndian.Uint32(body[12:]),
			Packets: binary.BigEndian.Uint32(body[16:]), Octets: binary.BigEndian.Uint32(body[20:]),
		}
	}
	for i := range blocks {
		k := body[fixed+i*blockLen:]
		if binary.BigEndian.Uint32(k) != ours {
			continue
		}
		r.Hears = true
		lost := int32(binary.BigEndian.Uint32(k[4:])<<8) >> 8 //nolint:gosec // 24 bits with a sign
		r.Block = Block{
			SSRC: ours, Fraction: k[4], Lost: int64(lost), Highest: binary.BigEndian.Uint32(k[8:]),
			Jitter: binary.BigEndian.Uint32(k[12:]), LastSR: binary.BigEndian.Uint32(k[16:]), Delay: binary.BigEndian.Uint32(k[20:]),
		}
	}
	return true
}

// NTP is a moment in 2⁻³² seconds since 1900 (RFC 3550 section 4).
func NTP(t time.Time) uint64 {
	const since1900 = 2_208_988_800
	seconds := uint64(t.Unix() + since1900)                             //nolint:gosec // after 1900
	return seconds<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second) //nolint:gosec // below a second
}

// Middle is the part of an NTP time that reports give back, in 2⁻¹⁶ seconds.
func Middle(ntp uint64) uint32 { return uint32(ntp >> 16) } //nolint:gosec // the middle 32 bits

// Units are a span in 2⁻¹⁶ seconds.
func Units(d time.Duration) uint32 { return uint32(d * 65536 / time.Second) } //nolint:gosec // a span of hours at most

// RoundTrip is the time to the other side and back, as of a block that came at
// now. It is false where the block cannot tell.
func (b *Block) RoundTrip(now uint64) (time.Duration, bool) {
	units := int32(Middle(now) - b.LastSR - b.Delay) //nolint:gosec // a difference on a circle
	if b.LastSR == 0 || units < 0 {
		return 0, false
	}
	return time.Duration(units) * time.Second / 65536, true
}
