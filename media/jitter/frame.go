package jitter

import (
	"math/bits"
	"time"
)

// Readiness is the state of the next frame.
type Readiness uint8

// Values of Readiness.
const (
	Wait     Readiness = iota // the frame is not due yet
	Complete                  // all packets of the frame have arrived
	Partial                   // the frame is due, but some or all of it is missing
)

// Ready returns the state of the next frame at now. The reader takes a Complete or Partial frame with Copy, and then
// calls Advance. NextRun finds the received parts of a Partial frame.
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

// due returns the time at which the next frame is released if it stays incomplete.
func (b *Buffer) due() time.Duration { return b.quickest() + span(b.next) + b.depth.get() }

// isComplete reports whether all of the next frame has arrived. It checks whole words of the bitmap have.
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

// Copy copies the next frame, FrameLen bytes, to dst. Bytes that are missing have no defined value.
func (b *Buffer) Copy(dst []byte) {
	at := b.next % windowLen
	n := copy(dst, b.bytes[at:min(at+frameTicks, windowLen)])
	copy(dst[n:], b.bytes[:frameTicks-int64(n)])
}

// NextRun returns the next received part of the next frame: the first received offset at or after i, and the end of
// that part. Both are FrameLen if nothing more was received.
func (b *Buffer) NextRun(i int) (from, to int) {
	from = b.until(i, true)
	return from, b.until(from, false)
}

// until returns the first offset at or after i whose byte was received (present) or is missing (not present).
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

// Arrived returns the time at which the last packet of the next frame arrived. The frame must be complete.
func (b *Buffer) Arrived() time.Duration {
	first, last := b.next/stampLen, (b.next+frameTicks-1)/stampLen
	return max(b.stamps[first%stampsLen], b.stamps[last%stampsLen])
}

// Format returns the payload format at offset i of the next frame, if that part was received. Each half of a frame
// has one format, which the last packet for that half sets.
func (b *Buffer) Format(i int) uint8 { return b.format[(b.next+int64(i))/stampLen%stampsLen] }

// Advance moves to the frame after the next one.
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

// Comfort reports whether the sender signals silence. level is the noise level in -dBov (RFC 3389 section 3).
func (b *Buffer) Comfort() (level uint8, on bool) { return b.noise, b.silent }

// Drift returns how far the sender's clock is ahead of the reader's clock since Start, adjusted by Skew. It is negative
// if the sender's clock is behind.
func (b *Buffer) Drift() time.Duration {
	if !b.hasAudio {
		return 0
	}
	return b.startedAt - b.quickest() + b.skew
}

// Skew records that the reader added frames to the timeline, or dropped some if frames is negative.
func (b *Buffer) Skew(frames int) { b.skew += time.Duration(frames) * frameTime }

// Stats holds counts of packets.
type Stats struct {
	Lost      int64         // packets that never arrived
	Duplicate int64         // packets that arrived a second time
	Late      int64         // packets that arrived after the release of their frame
	Resynced  int64         // number of new timelines
	Depth     time.Duration // current depth
}

// Stats returns the counts so far.
func (b *Buffer) Stats() Stats {
	return Stats{Lost: b.seqs.missing(), Duplicate: b.seqs.dup, Late: b.late, Resynced: b.skips, Depth: b.depth.get()}
}
