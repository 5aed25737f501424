package recorder

import "sync/atomic"

// A ring passes samples between two goroutines without a lock: the writer
// moves head, the reader tail.
type ring struct {
	buf  []int16
	head atomic.Int64
	tail atomic.Int64
	lost atomic.Int64
}

// write adds f. A full ring drops the frame and counts it; the reader inserts
// silence. A slow disk loses audio but never delays a call.
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

// read appends all queued samples to pcm, then silence for dropped ones.
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
