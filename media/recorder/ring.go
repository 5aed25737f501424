package recorder

import "sync/atomic"

// ring passes samples from one goroutine to another without a lock. The writer moves head, the reader moves tail.
type ring struct {
	buf  []int16
	head atomic.Int64
	tail atomic.Int64
	lost atomic.Int64
}

// write adds f. If the ring is full, it drops the frame and counts it, and the reader inserts silence. A slow disk
// may thus lose audio, but never delays a call.
func (r *ring) write(f []int16) {
	head := r.head.Load()
	if int(head-r.tail.Load())+len(f) > len(r.buf) {
		r.lost.Add(int64(len(f)))
		return
	}
	n := copy(r.buf[int(head)%len(r.buf):], f)
	copy(r.buf, f[n:])
	r.head.Store(head + int64(len(f)))
}

// read appends all samples in the ring to pcm, and then silence for the dropped samples.
func (r *ring) read(pcm []int16) []int16 {
	tail, head := r.tail.Load(), r.head.Load()
	for tail < head {
		at := int(tail) % len(r.buf)
		n := min(len(r.buf)-at, int(head-tail))
		pcm = append(pcm, r.buf[at:at+n]...)
		tail += int64(n)
	}
	r.tail.Store(tail)
	return append(pcm, make([]int16, r.lost.Swap(0))...)
}
