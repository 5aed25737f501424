package jitter

import "sync/atomic"

// RingLen is the capacity of a Ring in packets, a power of two.
const RingLen = 64

// A slot is a queued packet with its own copy of the payload.
type slot struct {
	packet  Packet
	payload [MaxPayload]byte
}

// A Ring passes packets from the receiver to the reader of a Buffer without a
// lock: Push belongs to one goroutine, Peek and Drop to another. Its zero
// value is ready to use.
type Ring struct {
	slots [RingLen]slot
	wrote atomic.Uint32 // owned by the writer
	read  atomic.Uint32 // owned by the reader
}

// Push copies a packet with at most MaxPayload bytes of payload. It returns
// false and drops the packet if the ring is full: the reader paused for
// RingLen packets, 1.28 s at 20 ms.
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

// Peek returns the oldest packet, or nil. It is valid until Drop.
func (r *Ring) Peek() *Packet {
	n := r.read.Load()
	if n == r.wrote.Load() {
		return nil
	}
	return &r.slots[n%RingLen].packet
}

// Drop removes the packet of the last Peek.
func (r *Ring) Drop() { r.read.Add(1) }
