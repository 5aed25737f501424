package jitter

import (
	"math/bits"
	"time"
)

// A Readiness describes the next frame.
type Readiness uint8

// Values of Readiness.
const (
	Wait     Readiness = iota // not due yet
	Complete                  // all packets have arrived
	Partial                   // due, with parts missing or empty
)

// Ready returns the state of the next frame at now. Unless it is Wait, the
// reader takes the frame with Copy, uses NextRun to find the received parts if
// it is Partial, and calls Advance.
func (b *Buffer) Ready(now time.Duration) Readiness {
	switch {
	case b.isComplete():
		return Complete
	case now >= b.due():
		return Partial
	default:
		return Wait
	}
}

// due returns when an incomplete next frame is released.
func (b *Buffer) due() time.Duration { return b.quickest() + span(b.next) + b.depth.get() }

// isComplete checks whole words of have at a time.
func (b *Buffer) isComplete() bool {
	for at := b.next; at < b.next+frameTicks; {
		n := min(64-at%64, b.next+frameTicks-at)
		mask := mask(n) << (at % 64)
		if b.have[at%windowLen/64]&mask != mask {
			return false
		}
		at += n
	}
	return true
}

func mask(n int64) uint64 { return ^uint64(0) >> (64 - n) }

// Copy copies the next frame of FrameLen bytes. Missing bytes are undefined.
func (b *Buffer) Copy(dst []byte) {
	at := b.next % windowLen
	n := copy(dst, b.bytes[at:min(at+frameTicks, windowLen)])
	copy(dst[n:], b.bytes[:frameTicks-int64(n)])
}

// NextRun returns the first received run of the next frame at or after i. Both
// values are FrameLen if no run follows.
func (b *Buffer) NextRun(i int) (from, to int) {
	from = b.until(i, true)
	return from, b.until(from, false)
}

// until returns the first offset at or after i whose presence equals present.
func (b *Buffer) until(i int, present bool) int {
	for i < FrameLen {
		at := b.next + int64(i)
		word := b.have[at%windowLen/64] >> (at % 64)
		if !present {
			word = ^word
		}
		left := int(64 - at%64)
		if n := bits.TrailingZeros64(word); n < left {
			return min(i+n, FrameLen)
		}
		i += left
	}
	return FrameLen
}

// Arrived returns when the last packet of the next, complete frame arrived.
func (b *Buffer) Arrived() time.Duration {
	first, last := b.next/stampLen, (b.next+frameTicks-1)/stampLen
	return max(b.stamps[first%stampsLen], b.stamps[last%stampsLen])
}

// Format returns the payload format at offset i of the next frame, if
// received. Each half of a frame has one format: that of its last packet.
func (b *Buffer) Format(i int) uint8 { return b.format[(b.next+int64(i))/stampLen%stampsLen] }

// Advance moves to the following frame.
func (b *Buffer) Advance() {
	for at := b.next; at < b.next+frameTicks; {
		n := min(64-at%64, b.next+frameTicks-at)
		b.have[at%windowLen/64] &^= mask(n) << (at % 64)
		at += n
	}
	b.next += frameTicks
}

// missing returns how many ticks of the next frame have not arrived.
func (b *Buffer) missing() (ticks int) {
	ticks = FrameLen
	for from, to := b.NextRun(0); from < FrameLen; from, to = b.NextRun(to) {
		ticks -= to - from
	}
	return ticks
}

// HasAudio reports whether a packet of speech or comfort noise has arrived.
func (b *Buffer) HasAudio() bool { return b.hasAudio }

// Comfort reports whether the sender signals silence, and its noise level in
// -dBov (RFC 3389 section 3).
func (b *Buffer) Comfort() (level uint8, on bool) { return b.noise, b.silent }

// Drift returns the duration of the frames taken minus the time since Start:
// the sender's clock drift against the reader's. Skew adjusts it.
func (b *Buffer) Drift() time.Duration {
	if !b.hasAudio {
		return 0
	}
	return b.startedAt - b.quickest() + b.skew
}

// Skew records frames that the reader added to the timeline; negative if it
// dropped some.
func (b *Buffer) Skew(frames int) { b.skew += time.Duration(frames) * frameTime }

// Stats counts packets.
type Stats struct {
	Lost      int64         // never arrived
	Duplicate int64         // arrived again
	Late      int64         // arrived after their frame was released
	Resynced  int64         // new timelines
	Depth     time.Duration // current wait for missing packets
}

// Stats returns the counts so far.
func (b *Buffer) Stats() Stats {
	return Stats{Lost: b.seqs.missing(), Duplicate: b.seqs.dup, Late: b.late, Resynced: b.skips, Depth: b.depth.get()}
}
