package jitter

import (
	"math/bits"
	"time"
)

// A Release is what the buffer has for its reader.
type Release uint8

// Releases.
const (
	Wait  Release = iota // nothing is due yet
	Whole                // a frame, complete
	Holed                // a frame that is due, with holes or empty
)

// Ready says what there is of the next frame at now. Unless it is Wait, the
// reader takes the frame with Copy, where it is Holed asks Run for what there
// is of it, and goes on with Advance.
func (b *Buffer) Ready(now time.Duration) Release {
	switch {
	case b.complete():
		return Whole
	case now >= b.due():
		return Holed
	default:
		return Wait
	}
}

// due is when the hole at the next frame is given up.
func (b *Buffer) due() time.Duration { return b.quickest() + span(b.next) + b.depth.get() }

// complete looks at whole words at a time, as far as the frame covers them.
func (b *Buffer) complete() bool {
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

// Copy copies the next frame, FrameLen long. Bytes in holes are of no meaning.
func (b *Buffer) Copy(dst []byte) {
	at := b.next % windowLen
	n := copy(dst, b.bytes[at:min(at+frameTicks, windowLen)])
	copy(dst[n:], b.bytes[:frameTicks-int64(n)])
}

// Run returns the first stretch of the next frame, at i or after, that is
// there. Both are FrameLen where there is none.
func (b *Buffer) Run(i int) (from, to int) {
	from = b.until(i, true)
	return from, b.until(from, false)
}

// until is the first offset, at i or after, whose byte is there or is not.
func (b *Buffer) until(i int, there bool) int {
	for i < FrameLen {
		at := b.next + int64(i)
		word := b.have[at%windowLen/64] >> (at % 64)
		if !there {
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

// Arrived is when the last packet of the next frame, a whole one, came in.
func (b *Buffer) Arrived() time.Duration {
	first, last := b.next/stampLen, (b.next+frameTicks-1)/stampLen
	return max(b.stamps[first%stampsLen], b.stamps[last%stampsLen])
}

// Format is the format of the payload at offset i of the next frame, where it
// is there. Each half of a frame is of one: of a half that mixes two, the one
// that came last.
func (b *Buffer) Format(i int) uint8 { return b.format[(b.next+int64(i))/stampLen%stampsLen] }

// Advance goes on to the frame after the next.
func (b *Buffer) Advance() {
	for at := b.next; at < b.next+frameTicks; {
		n := min(64-at%64, b.next+frameTicks-at)
		b.have[at%windowLen/64] &^= mask(n) << (at % 64)
		at += n
	}
	b.next += frameTicks
}

// missing is how many ticks of the next frame are not there.
func (b *Buffer) missing() (ticks int) {
	ticks = FrameLen
	for from, to := b.Run(0); from < FrameLen; from, to = b.Run(to) {
		ticks -= to - from
	}
	return ticks
}

// Heard is whether a packet of speech or comfort noise has come.
func (b *Buffer) Heard() bool { return b.heard }

// Comfort is whether the party is silent and says so, and how loud its
// background is, in -dBov (RFC 3389 section 3).
func (b *Buffer) Comfort() (level uint8, on bool) { return b.noise, b.hush }

// Ahead is how much longer the frames taken are than the time that passed
// since Begin: the drift of the sender's clock against the reader's. It is
// negative where they fall short. Skew moves it.
func (b *Buffer) Ahead() time.Duration {
	if !b.heard {
		return 0
	}
	return b.begun - b.quickest() + b.skew
}

// Skew tells that the reader made frames up, or left some out where frames is
// negative, beyond those of the timeline.
func (b *Buffer) Skew(frames int) { b.skew += time.Duration(frames) * frameTime }

// Stats counts what happened to the packets.
type Stats struct {
	Lost      int64         // packets that never came
	Duplicate int64         // packets that came twice
	Late      int64         // packets that came after their frame was given up
	Resynced  int64         // new timelines
	Depth     time.Duration // that a hole is waited for now
}

// Stats returns the counts so far.
func (b *Buffer) Stats() Stats {
	return Stats{Lost: b.seqs.missing(), Duplicate: b.seqs.dup, Late: b.late, Resynced: b.skips, Depth: b.depth.get()}
}
