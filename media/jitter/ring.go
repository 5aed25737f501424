package jitter

import "sync/atomic"

// RingLen is how many packets a Ring holds; a power of two.
const RingLen = 64

// A slot is one packet on its way, with its payload in bytes of its own.
type slot struct {
	packet  Packet
	payload [MaxPayload]byte
}

// A Ring carries packets from who receives them to the reader of a Buffer,
// without a lock: Push belongs to one goroutine, Peek and Drop to another. Its
// zero value is ready.
type Ring struct {
	slots [RingLen]slot
	wrote atomic.Uint32 // owned by the writer
	read  atomic.Uint32 // owned by the reader
}

// Push copies a packet in, with MaxPayload bytes of payload at most. It is
// false where the ring is full: the reader has slept for RingLen packets, 1.28 s
// where they are of 20 ms. The new packet is dropped, because the old ones
// belong to the reader.
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

// Peek returns the oldest packet, or nil. It is the reader's until Drop.
func (r *Ring) Peek() *Packet {
	n := r.read.Load()
	if n == r.wrote.Load() {
		return nil
	}
	return &r.slots[n%RingLen].packet
}

// Drop gives the packet of the last Peek back.
func (r *Ring) Drop() { r.read.Add(1) }
