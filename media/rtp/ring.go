package rtp

import (
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media/jitter"
)

const (
	ringLen    = 64 // packets; a power of two
	maxPayload = jitter.MaxPayload
)

// A slot is one packet on its way to the reader, in bytes of its own.
type slot struct {
	at      time.Duration // of arrival, since the session began
	ts      uint32
	ssrc    uint32
	seq     uint16
	n       uint16 // of payload
	marker  bool
	kind    jitter.Kind
	format  uint8
	payload [maxPayload]byte
}

// A ring carries packets from one writer to one reader without a lock.
type ring struct {
	slots [ringLen]slot
	wrote atomic.Uint32 // owned by the writer
	read  atomic.Uint32 // owned by the reader
}

// push copies a packet in. It is false where the ring is full: the reader has
// slept for ringLen packets, 1.28 s where they are of 20 ms. The new packet is
// dropped, because the old ones belong to the reader.
func (r *ring) push(p *packet, k jitter.Kind, at time.Duration) bool {
	w := r.wrote.Load()
	if w-r.read.Load() == ringLen {
		return false
	}
	s := &r.slots[w%ringLen]
	s.at, s.ts, s.ssrc, s.seq, s.marker, s.kind, s.format = at, p.ts, p.ssrc, p.seq, p.marker, k, p.format
	s.n = uint16(copy(s.payload[:], p.payload)) //nolint:gosec // at most maxPayload
	r.wrote.Store(w + 1)
	return true
}

// peek returns the oldest packet, or nil. It is the reader's until drop.
func (r *ring) peek() *slot {
	n := r.read.Load()
	if n == r.wrote.Load() {
		return nil
	}
	return &r.slots[n%ringLen]
}

// drop gives the slot of the last peek back.
func (r *ring) drop() { r.read.Add(1) }
