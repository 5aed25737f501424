package jitter

import "sync/atomic"

// RingLen is the capacity of a Ring in packets, a power of two.
const RingLen = 64

// slot is a packet in the ring with its own copy of the payload.
type slot struct {
	packet  Packet
	payload [MaxPayload]byte
}

// Ring passes packets from the receiver to the reader of a Buffer without a lock. Push must be called from one
// goroutine, Peek and Drop from another one. The zero value is ready to use.
type Ring struct {
	slots [RingLen]slot
	wrote atomic.Uint32 // only the writer changes it
	read  atomic.Uint32 // only the reader changes it
}

// Push adds a copy of a packet with at most MaxPayload bytes of payload. If the ring is full, it returns false and
// drops the packet. The ring is full if the reader has paused for RingLen packets, which is 1.28 s at 20 ms per
// packet.
func (r *Ring) Push(p *Packet) bool {
	w := r.wrote.Load()
	if w-r.read.Load() == RingLen {
		return false
	}
	s := &r.slots[w%RingLen]
	n := copy(s.payload[:], p.Payload)
	s.packet = *p
	s.packet.Payload = s.payload[:n]
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
func (r *Ring) Drop() { r.read.Add(1) }
