// Package rtcp reads and writes RTCP reports (RFC 3550 section 6), and estimates the listening quality of streams. It
// does no I/O, reads no clock and allocates nothing.
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

// MaxLen is the maximum number of bytes that Append writes for a CNAME of 32 bytes.
const MaxLen = headLen + 4 + senderLen + blockLen + (headLen + 4 + 2 + 32 + 4) + (headLen + 4)

// ErrMalformed means that a packet is not a valid compound packet (RFC 3550 appendix A.2).
var ErrMalformed = errors.New("malformed rtcp packet")

// SenderInfo is the part of a report that describes the reporter's own stream.
type SenderInfo struct {
	NTP             uint64 // time of sending (RFC 3550 section 4)
	RTP             uint32 // RTP timestamp at that time
	Packets, Octets uint32
}

// Block is a receiver's report about one stream.
type Block struct {
	SSRC     uint32 // SSRC of the stream
	Fraction uint8  // share of packets lost since the previous report, in 256ths
	Lost     int64  // total of lost packets; negative if there were many duplicates
	Highest  uint32 // highest extended sequence number
	Jitter   uint32 // in ticks of the RTP clock
	LastSR   uint32 // compact NTP time in the last sender report; 0 if there was none
	Delay    uint32 // time since that report, in 65536ths of a second
}

// Report is the content of one compound packet.
type Report struct {
	SSRC      uint32 // SSRC of the reporter
	HasSender bool   // Sender is valid
	Sender    SenderInfo
	HasBlock  bool // Block is valid
	Block     Block
	Bye       bool // the source leaves the session
}

// Append appends the report to b. name is the CNAME, at most 32 bytes.
func (r *Report) Append(b []byte, name string) []byte {
	kind, words := uint8(typeReceiver), 1
	if r.HasSender {
		kind, words = typeSender, words+senderLen/4
	}
	blocks := uint8(0)
	if r.HasBlock {
		blocks, words = 1, words+blockLen/4
	}
	b = appendHeader(b, blocks, kind, words)
	b = binary.BigEndian.AppendUint32(b, r.SSRC)
	if r.HasSender {
		b = binary.BigEndian.AppendUint64(b, r.Sender.NTP)
		b = binary.BigEndian.AppendUint32(b, r.Sender.RTP)
		b = binary.BigEndian.AppendUint32(b, r.Sender.Packets)
		b = binary.BigEndian.AppendUint32(b, r.Sender.Octets)
	}
	if r.HasBlock {
		k := &r.Block
		b = binary.BigEndian.AppendUint32(b, k.SSRC)
		b = binary.BigEndian.AppendUint32(b, uint32(k.Fraction)<<24|uint32(k.Lost)&0xffffff) //nolint:gosec // the low 24 bits
		b = binary.BigEndian.AppendUint32(b, k.Highest)
		b = binary.BigEndian.AppendUint32(b, k.Jitter)
		b = binary.BigEndian.AppendUint32(b, k.LastSR)
		b = binary.BigEndian.AppendUint32(b, k.Delay)
	}
	item := 4 + 2 + len(name)
	pad := 4 - item%4 // at least one zero byte ends the items (RFC 3550 section 6.5)
	b = appendHeader(b, 1, typeSource, (item+pad)/4)
	b = binary.BigEndian.AppendUint32(b, r.SSRC)
	b = append(b, cname, uint8(len(name))) //nolint:gosec // 32 at most
	b = append(b, name...)
	b = append(b, "\x00\x00\x00\x00"[:pad]...)
	if r.Bye {
		b = appendHeader(b, 1, typeBye, 1)
		b = binary.BigEndian.AppendUint32(b, r.SSRC)
	}
	return b
}

func appendHeader(b []byte, count, kind uint8, words int) []byte {
	return append(b, 2<<6|count, kind, byte(words>>8), byte(words)) //nolint:gosec // a length of 16 bits
}

// Parse reads a compound packet. It sets Block to the block about the stream with the SSRC local.
func Parse(b []byte, local uint32) (Report, error) {
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
			if !r.read(b[1], int(b[0]&31), body, local, first) {
				return Report{}, ErrMalformed
			}
		case b[1] == typeBye:
			if !r.readBye(int(b[0]&31), body) {
				return Report{}, ErrMalformed
			}
		}
		b = b[n:]
	}
	return r, nil
}

func (r *Report) readBye(sources int, body []byte) bool {
	if 4*sources > len(body) {
		return false
	}
	for i := range sources {
		r.Bye = r.Bye || binary.BigEndian.Uint32(body[4*i:]) == r.SSRC
	}
	return true
}

func (r *Report) read(kind uint8, blocks int, body []byte, local uint32, first bool) bool {
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
		r.HasSender = true
		r.Sender = SenderInfo{
			NTP: binary.BigEndian.Uint64(body[4:]), RTP: binary.BigEndian.Uint32(body[12:]),
			Packets: binary.BigEndian.Uint32(body[16:]), Octets: binary.BigEndian.Uint32(body[20:]),
		}
	}
	for i := range blocks {
		k := body[fixed+i*blockLen:]
		if binary.BigEndian.Uint32(k) != local {
			continue
		}
		r.HasBlock = true
		lost := int32(binary.BigEndian.Uint32(k[4:])<<8) >> 8 //nolint:gosec // 24 bits with a sign
		r.Block = Block{
			SSRC: local, Fraction: k[4], Lost: int64(lost), Highest: binary.BigEndian.Uint32(k[8:]),
			Jitter: binary.BigEndian.Uint32(k[12:]), LastSR: binary.BigEndian.Uint32(k[16:]), Delay: binary.BigEndian.Uint32(k[20:]),
		}
	}
	return true
}

// NTP returns t as an NTP timestamp, in units of 2⁻³² s since 1900 (RFC 3550 section 4).
func NTP(t time.Time) uint64 {
	const since1900 = 2_208_988_800
	seconds := uint64(t.Unix() + since1900)                             //nolint:gosec // after 1900
	return seconds<<32 | uint64(t.Nanosecond())<<32/uint64(time.Second) //nolint:gosec // below a second
}

// CompactNTP returns the middle 32 bits of an NTP timestamp, in units of 2⁻¹⁶ s.
func CompactNTP(ntp uint64) uint32 { return uint32(ntp >> 16) } //nolint:gosec // the middle 32 bits

// DelayUnits converts a duration to units of 2⁻¹⁶ s.
func DelayUnits(d time.Duration) uint32 { return uint32(d * 65536 / time.Second) } //nolint:gosec // a span of hours at most

// RoundTrip returns the round-trip time for a block that arrived at now. It returns false if the block has no usable
// times.
func (b *Block) RoundTrip(now uint64) (time.Duration, bool) {
	units := int32(CompactNTP(now) - b.LastSR - b.Delay) //nolint:gosec // modular difference
	if b.LastSR == 0 || units < 0 {
		return 0, false
	}
	return time.Duration(units) * time.Second / 65536, true
}
