package recorder

import "sync/atomic"

const (
	blockLen    = 2048 // samples per block: 256 ms at 8 kHz
	spareBlocks = 4    // most blocks kept for reuse: those of flushEvery at 16 kHz
)

// A ring passes samples from one goroutine to another without a lock. It allocates memory only while the disk is slow.
type ring struct {
	spare  chan *block  // blocks for reuse
	blocks atomic.Int64 // number of blocks in use
	lost   atomic.Int64 // number of dropped samples that the reader has not replaced yet
	to     *block       // block that write fills
	from   *block       // block that read empties
	at     int          // number of samples of from that were read
}

// A block is full before the next one has samples.
type block struct {
	pcm  [blockLen]int16
	n    atomic.Int64 // number of samples that were written
	next atomic.Pointer[block]
}

func newRing() *ring {
	b := new(block)
	r := &ring{spare: make(chan *block, spareBlocks), to: b, from: b}
	r.blocks.Store(1)
	return r
}

// write adds f. If the ring is full, it drops the frame and counts it, and the reader inserts silence. A slow disk
// may thus lose audio, but never delays a call.
func (r *ring) write(f []int16) {
	n := int(r.to.n.Load())
	if n+len(f) > blockLen && !r.extend() {
		r.lost.Add(int64(len(f)))
		return
	}
	head := copy(r.to.pcm[n:], f)
	r.to.n.Store(int64(n + head))
	if rest := f[head:]; len(rest) > 0 {
		r.to = r.to.next.Load()
		r.to.n.Store(int64(copy(r.to.pcm[:], rest)))
	}
}

// extend adds an empty block after r.to. It returns false if the ring is full.
func (r *ring) extend() bool {
	if r.blocks.Load() >= ringLen/blockLen {
		return false
	}
	r.blocks.Add(1)
	var b *block
	select {
	case b = <-r.spare:
		b.n.Store(0)
		b.next.Store(nil)
	default: // the disk is slow
		b = new(block)
	}
	r.to.next.Store(b)
	return true
}

// read appends all samples in the ring to pcm, and then silence for the dropped samples.
func (r *ring) read(pcm []int16) []int16 {
	for {
		n, next := int(r.from.n.Load()), r.from.next.Load()
		pcm = append(pcm, r.from.pcm[r.at:n]...)
		if r.at = n; next == nil || n < blockLen {
			break
		}
		select {
		case r.spare <- r.from:
		default: // enough blocks are kept
		}
		r.from, r.at = next, 0
		r.blocks.Add(-1)
	}
	return append(pcm, make([]int16, r.lost.Swap(0))...)
}
