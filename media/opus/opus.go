// Package opus decodes Opus (RFC 6716, RFC 7587). The jitter buffer expects one payload byte per tick of 8 kHz. The
// decoder therefore stores each packet and passes placeholder bytes through the buffer. The placeholders contain the
// number of the packet and the position in its audio.
package opus

import (
	"encoding/binary"
	"fmt"

	"github.com/pion/opus"

	"github.com/parley-voice/parley/media/jitter"
)

// Rate is the sample rate of the output, in Hz.
const Rate = 16000

const (
	perTick = Rate / jitter.ClockRate // samples per tick
	slots   = 128                     // stored packets; the jitter buffer holds fewer if packets last 10 ms or more
	mark    = 0xa5                    // first byte of each placeholder
)

// Decoder decodes one stream. It must be used by the goroutine that reads the stream. It allocates nothing after New,
// unless the sender changes its bandwidth.
type Decoder struct {
	opus        opus.Decoder
	packets     [slots]storedPacket
	next        uint16 // number of the next packet
	placeholder [jitter.MaxPayload]byte

	decoded  bool   // pcm holds a packet
	number   uint16 // number of the packet in pcm
	pcm      [jitter.MaxPayload * perTick]int16
	samples  int // number of samples in pcm
	failures int64
}

type storedPacket struct {
	number uint16
	len    uint16 // length of the packet; 0 if the slot is empty
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

// Store implements receiver.PacketStore. The placeholder is valid until the next call. Store changes the kind of an
// invalid packet to Key, so that only its sequence number is used.
func (d *Decoder) Store(p *jitter.Packet) {
	n := Ticks(p.Payload)
	if n == 0 {
		d.failures++
		p.Payload, p.Kind = nil, jitter.Key
		return
	}
	k := &d.packets[d.next%slots]
	k.number, k.len = d.next, uint16(copy(k.bytes[:], p.Payload)) //nolint:gosec // at most MaxPayload
	for i := 0; i < n; i += block {
		d.placeholder[i], d.placeholder[i+3] = mark, byte(i/block)
		binary.BigEndian.PutUint16(d.placeholder[i+1:], d.next)
	}
	p.Payload = d.placeholder[:n]
	d.next++
}

// Decode decodes placeholders and returns the number of samples. A packet that cannot be decoded becomes silence.
func (d *Decoder) Decode(dst []int16, payload []byte) int {
	written := 0
	for len(payload) > 0 && written < len(dst) {
		n := min(len(payload), block)
		to := dst[written:min(len(dst), written+n*perTick)]
		if sound := d.samplesFor(payload[:n]); sound != nil {
			clear(to[copy(to, sound):])
		} else {
			clear(to)
		}
		written += len(to)
		payload = payload[n:]
	}
	return written
}

func (d *Decoder) samplesFor(b []byte) []int16 {
	if len(b) < 4 || b[0] != mark {
		return nil
	}
	which, place := binary.BigEndian.Uint16(b[1:]), int(b[3])*block*perTick
	if !d.decoded || d.number != which {
		if !d.decodePacket(which) {
			return nil
		}
	}
	if place >= d.samples {
		return nil
	}
	return d.pcm[place:min(d.samples, place+block*perTick)]
}

func (d *Decoder) decodePacket(which uint16) (ok bool) {
	k := &d.packets[which%slots]
	if k.len == 0 || k.number != which {
		return false
	}
	d.decoded, d.number, d.samples = true, which, 0
	// Packets are not trusted: a panic in the library must not end the process.
	defer func() {
		if recover() != nil {
			d.failures++
			ok = false
			d.reset()
		}
	}()
	n, err := d.opus.DecodeToInt16(k.bytes[:k.len], d.pcm[:])
	if err != nil {
		d.failures++
		return false
	}
	d.samples = n
	return true
}

func (d *Decoder) reset() {
	if decoder, err := opus.NewDecoderWithOutput(Rate, 1); err == nil {
		d.opus = decoder
	}
}

// Failures returns the number of packets that could not be decoded.
func (d *Decoder) Failures() int64 { return d.failures }
