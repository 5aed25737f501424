package jitter

import "sync/atomic"

const (
	// RingLen is the capacity of a Ring in packets, a power of two.
	RingLen = 64
	// ringBytes is its capacity in bytes of payload: RingLen packets of 20 ms.
	ringBytes = RingLen * FrameLen
)

// slot is a packet in the ring. end is the position behind its payload.
type slot struct {
	packet Packet
	end    uint64
}

// Ring passes packets from the receiver to the reader of a Buffer without a lock. Push must be called from one
// goroutine, Peek and Drop from another one. The zero value is ready to use. Positions of bytes never wrap.
type Ring struct {
	slots [RingLen]slot
	bytes [ringBytes]byte // payloads
	wrote atomic.Uint32   // only the writer changes it
	read  atomic.Uint32   // only the reader changes it
	end   uint64          // position behind the last payload; only the writer uses it
	freed atomic.Uint64   // position up to which the reader has dropped payloads; only the reader changes it
}

// Push adds a copy of a packet with at most MaxPayload bytes of payload. If the ring is full, it returns false and
// drops the packet. The ring is full if the reader has paused for 1.28 s of packets with a byte per tick.
func (r *Ring) Push(p *Packet) bool {
	w, n, at := r.wrote.Load(), min(uint64(len(p.Payload)), MaxPayload), r.end
	if rest := ringBytes - at%ringBytes; n > rest {
		at += rest // a payload is contiguous
	}
	if w-r.read.Load() == RingLen || at+n-r.freed.Load() > ringBytes {
		return false
	}
	r.end = at + n
	s := &r.slots[w%RingLen]
	s.packet, s.end = *p, r.end
	s.packet.Payload = r.bytes[at%ringBytes:][:n]
	copy(s.packet.Payload, p.Payload)
	r.wrote.Store(w + 1)
	return true
}

// Peek returns the oldest packet, or nil. The packet is valid until Drop.
func (r *Ring) Peek() *Packet {
	n := r.read.Load()
	if n == r.wrote.Load() {
		return nil
	}
	return &r.slots[n%RingLen].packet
}

// Drop removes the packet that Peek returned.
func (r *Ring) Drop() {
	n := r.read.Load()
	r.freed.Store(r.slots[n%RingLen].end)
	r.read.Store(n + 1)
}
