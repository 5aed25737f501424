// Package opus hears Opus (RFC 6716, RFC 7587) through a jitter buffer that
// counts in ticks of 8 kHz: a packet is kept aside, and what stands for it in the
// buffer tells which one it is and which part of it.
package opus

import (
	"encoding/binary"
	"fmt"

	"github.com/pion/opus"

	"github.com/parley-voice/parley/media/jitter"
)

// Rate is the rate of the samples that come out, in Hz.
const Rate = 16000

const (
	perTick = Rate / jitter.ClockRate // samples
	slots   = 128                     // packets kept: more than the buffer holds of those of 10 ms and longer
	mark    = 0xa5                    // begins what stands for a block
)

// A Decoder decodes one stream. It belongs to the stream's reader and allocates
// nothing after New, save where the party changes its bandwidth.
type Decoder struct {
	opus  opus.Decoder
	kept  [slots]kept
	next  uint16 // number of the next packet
	stand [jitter.MaxPayload]byte

	has   bool   // pcm is of a packet
	which uint16 // of this one
	pcm   [jitter.MaxPayload * perTick]int16
	got   int // samples of it
	bad   int64
}

type kept struct {
	number uint16
	len    uint16 // 0: none
	bytes  [jitter.MaxPayload]byte
}

// New returns a Decoder.
func New() (*Decoder, error) {
	d, err := opus.NewDecoderWithOutput(Rate, 1)
	if err != nil {
		return nil, fmt.Errorf("opus: %w", err)
	}
	return &Decoder{opus: d}, nil
}

// Keep takes a packet in, and makes its payload what stands for it, one byte a
// tick. It holds until the next call. Of what is no packet only the number counts.
func (d *Decoder) Keep(p *jitter.Packet) {
	n := Ticks(p.Payload)
	if n == 0 {
		d.bad++
		p.Payload, p.Kind = nil, jitter.Key
		return
	}
	k := &d.kept[d.next%slots]
	k.number, k.len = d.next, uint16(copy(k.bytes[:], p.Payload)) //nolint:gosec // at most MaxPayload
	for i := 0; i < n; i += block {
		d.stand[i], d.stand[i+3] = mark, byte(i/block)
		binary.BigEndian.PutUint16(d.stand[i+1:], d.next)
	}
	p.Payload = d.stand[:n]
	d.next++
}

// Decode writes the sound that payload stands for, and returns the samples
// written. What cannot be decoded is silent.
func (d *Decoder) Decode(dst []int16, payload []byte) int {
	written := 0
	for len(payload) > 0 && written < len(dst) {
		n := min(len(payload), block)
		to := dst[written:min(len(dst), written+n*perTick)]
		if sound := d.part(payload[:n]); sound != nil {
			clear(to[copy(to, sound):])
		} else {
			clear(to)
		}
		written += len(to)
		payload = payload[n:]
	}
	return written
}

// part is the sound that a block stands for; nil where it stands for nothing.
func (d *Decoder) part(b []byte) []int16 {
	if len(b) < 4 || b[0] != mark {
		return nil
	}
	which, place := binary.BigEndian.Uint16(b[1:]), int(b[3])*block*perTick
	if !d.has || d.which != which {
		if !d.open(which) {
			return nil
		}
	}
	if place >= d.got {
		return nil
	}
	return d.pcm[place:min(d.got, place+block*perTick)]
}

// open decodes a packet that was kept.
func (d *Decoder) open(which uint16) (ok bool) {
	k := &d.kept[which%slots]
	if k.len == 0 || k.number != which {
		return false
	}
	d.has, d.which, d.got = true, which, 0
	// The bytes are the party's: what the library cannot bear must not end the
	// process.
	defer func() {
		if recover() != nil {
			d.bad++
			ok = false
			d.reset()
		}
	}()
	n, err := d.opus.DecodeToInt16(k.bytes[:k.len], d.pcm[:])
	if err != nil {
		d.bad++
		return false
	}
	d.got = n
	return true
}

func (d *Decoder) reset() {
	if fresh, err := opus.NewDecoderWithOutput(Rate, 1); err == nil {
		d.opus = fresh
	}
}

// Bad is how many packets could not be decoded.
func (d *Decoder) Bad() int64 { return d.bad }
