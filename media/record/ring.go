package record

import "sync/atomic"

// A ring carries samples from one goroutine to another without a lock: the
// writer moves head, the reader tail.
type ring struct {
	buf  []int16 // its length is a power of two
	head atomic.Uint64
	tail atomic.Uint64
	lost atomic.Uint64
}

// write adds f. A full ring drops the frame but counts it, so that the reader
// can put silence in its place: a slow disk costs sound, never a call's pace.
func (r *ring) write(f []int16) {
	head := r.head.Load()
	if head+uint64(len(f))-r.tail.Load() > uint64(len(r.buf)) {
		r.lost.Add(uint64(len(f)))
		return
	}
	at := int(head & uint64(len(r.buf)-1))
	n := copy(r.buf[at:], f)
	copy(r.buf, f[n:])
	r.head.Store(head + uint64(len(f)))
}

// read appends all that is there to pcm.
func (r *ring) read(pcm []int16) []int16 {
	tail, head := r.tail.Load(), r.head.Load()
	for tail < head {
		at := int(tail & uint64(len(r.buf)-1))
		n := min(len(r.buf)-at, int(head-tail))
		pcm = append(pcm, r.buf[at:at+n]...)
		tail += uint64(n)
	}
	r.tail.Store(tail)
	return append(pcm, make([]int16, r.lost.Swap(0))...)
}
