package jitter

import (
	"math"
	"time"
)

const (
	frameTicks = int64(FrameLen)
	windowLen  = 8192 // ticks held at most; a power of two
	stampLen   = 80   // ticks that share one arrival time, and one format
	stampsLen  = 256  // covers the window twice; a power of two

	leap        = 500 * time.Millisecond // a packet so much too early comes from another timeline
	floorSpan   = 2 * time.Second        // the quickest packet is remembered for one to two of these
	lateRun     = 5                      // late packets that are a new timeline
	lateSpan    = 80 * time.Millisecond  // over which they must come: a burst of old packets is none
	lateSpread  = 100 * time.Millisecond // by which their lateness may differ
	silentAfter = time.Second            // without packets, as after comfort noise, a marker on a late packet begins a new timeline
	straggle    = 100 * time.Millisecond // packets of the source before may still come so long
)

// A Buffer puts the packets of one party back in order on the sender's
// timeline and cuts it into frames. Positions on the timeline are ticks; they
// never wrap. It belongs to one goroutine and allocates nothing after New.
//
// A frame is released as soon as it is complete. Only a hole is waited for,
// until the depth has passed after its frame would have come on the quickest
// path seen lately. The depth follows the jitter, from 20 to 120 ms.
type Buffer struct {
	bytes  [windowLen]byte
	have   [windowLen / 64]uint64
	stamps [stampsLen]time.Duration
	format [stampsLen]uint8

	next int64 // position of the next frame to release
	far  int64 // end of what came furthest

	heard      bool // a packet has come
	source, ts uint32
	pos        int64 // of ts
	last       time.Duration
	former     uint32        // the source before
	changed    time.Duration // when it was left; valid where skips > 0
	hush       bool          // the last packet was comfort noise
	noise      uint8         // its level

	floor, prev time.Duration // least transit in this span and the one before
	floorSince  time.Duration
	depth       depth

	lates     int
	lateAt    time.Duration
	lateSince time.Duration

	begun time.Duration
	skew  time.Duration // by which the reader made the frames more, or fewer

	seqs  sequence
	late  int64
	skips int64
}

// New returns an empty buffer.
func New() *Buffer {
	return &Buffer{prev: math.MaxInt64, depth: depth{before: firstDelay}}
}

// Begin starts the timeline at now: silence is due from then on.
func (b *Buffer) Begin(now time.Duration) {
	b.begun, b.skew = now-span(b.next), 0
	b.floor, b.floorSince = b.begun, now
}

// Put takes one packet. The number of a key's packet counts, where it is of
// the sequence that speech is numbered in; its timeline is another (RFC 4733
// section 2.5.1.2). A packet longer than MaxPayload is ignored.
func (b *Buffer) Put(p *Packet) {
	if p.Kind == Key {
		if !b.heard || p.Source == b.source {
			b.seqs.see(p.Source, p.Seq)
		}
		return
	}
	if len(p.Payload) > MaxPayload {
		return
	}
	if b.straggler(p) {
		b.late++
		return
	}
	if fresh := b.seqs.see(p.Source, p.Seq); !fresh {
		return
	}
	if !b.heard || p.Source != b.source {
		b.resync(p)
	}
	if !b.place(p) {
		return
	}
	b.last, b.hush = p.At, p.Kind == Comfort
	if b.hush {
		b.noise = quietest
		if len(p.Payload) > 0 {
			b.noise = p.Payload[0] & quietest
		}
		return
	}
	b.store(p)
}

// Full says that p lies beyond what can be held, while the next frame is whole
// and is best taken first: else p would be taken for one of a new timeline.
func (b *Buffer) Full(p *Packet) bool {
	if !b.heard || p.Kind != Speech || p.Source != b.source {
		return false
	}
	end := b.pos + int64(int32(p.Stamp-b.ts)) + int64(len(p.Payload)) //nolint:gosec // a difference on a circle
	return end > b.next+windowLen && b.complete()
}

// quietest is the lowest level of comfort noise, in -dBov.
const quietest = 127

// straggler says whether a packet is of the source before, overtaken by the
// first packets of the new one.
func (b *Buffer) straggler(p *Packet) bool {
	return b.skips > 0 && p.Source == b.former && p.Source != b.source && p.At-b.changed < straggle
}

// place finds the position of a packet, and where it has none on this
// timeline, begins another. It is false for a packet that came too late.
func (b *Buffer) place(p *Packet) bool {
	pos := b.pos + int64(int32(p.Stamp-b.ts)) //nolint:gosec // a difference on a circle
	end := pos + int64(len(p.Payload))
	transit := p.At - span(pos)
	switch {
	case transit < b.quickest()-leap || end > b.next+windowLen:
		b.resync(p)
	case end <= b.next && p.Kind == Comfort:
		// Its level holds, whenever it is from. It is no sign of a longer path:
		// some clocks stand still in silence, and that is due in time.
	case end <= b.next:
		b.depth.learn(transit-b.quickest(), p.At)
		if !b.tooLate(p, transit) {
			return false
		}
		b.resync(p)
	default:
		pos = b.align(p, pos)
		b.lates = 0
		b.ts, b.pos = p.Stamp, pos
		b.learn(p.At-span(pos), p.At)
	}
	return true
}

// align moves the timeline by less than a frame where speech begins again in
// the middle of one, after a silence that the sender meant: else every frame
// of it would wait for two packets.
func (b *Buffer) align(p *Packet, pos int64) int64 {
	off := (pos - b.next) % frameTicks
	if off <= 0 || b.far > b.next || p.Kind != Speech || !p.Marker && !b.hush {
		return pos
	}
	if off < frameTicks/2 {
		return pos - off
	}
	return pos + frameTicks - off
}

func (b *Buffer) quickest() time.Duration { return min(b.floor, b.prev) }

// resync makes p the next frame: what came before is of another timeline.
func (b *Buffer) resync(p *Packet) {
	if b.heard {
		b.skips++
		if p.Source != b.source {
			b.former, b.changed = b.source, p.At
		}
	}
	b.have = [windowLen / 64]uint64{}
	b.heard, b.source, b.ts, b.pos, b.far, b.lates = true, p.Source, p.Stamp, b.next, b.next, 0
	b.floor, b.prev, b.floorSince = p.At-span(b.next), math.MaxInt64, p.At
}

// learn keeps the least transit of the last spans, so that a sender's clock
// that runs slower than ours moves the dues along with it.
func (b *Buffer) learn(transit, at time.Duration) {
	if at-b.floorSince > floorSpan {
		b.prev, b.floor, b.floorSince = b.floor, transit, at
	}
	b.floor = min(b.floor, transit)
	b.depth.learn(transit-b.quickest(), at)
}

// tooLate counts a late packet, and says whether it is rather the first of a
// new timeline: the path became longer, or the sender's clock stood still.
func (b *Buffer) tooLate(p *Packet, transit time.Duration) bool {
	if p.Marker && (b.hush || p.At-b.last > silentAfter) || b.hush && transit > b.quickest()+leap {
		return true
	}
	if off := transit - b.lateAt; b.lates == 0 || off > lateSpread || off < -lateSpread {
		b.lates, b.lateAt, b.lateSince = 0, transit, p.At
	}
	b.lates++
	if b.lates >= lateRun && p.At-b.lateSince >= lateSpan {
		return true
	}
	b.late++
	return false
}

func (b *Buffer) store(p *Packet) {
	n := int64(len(p.Payload))
	for i := max(0, b.next-b.pos); i < n; { // as much at once as one word tells of
		at := b.pos + i
		run := min(64-at%64, n-i)
		copy(b.bytes[at%windowLen:], p.Payload[i:i+run])
		b.have[at%windowLen/64] |= mask(run) << (at % 64)
		for stamp := at / stampLen; stamp <= (at+run-1)/stampLen; stamp++ {
			b.stamps[stamp%stampsLen], b.format[stamp%stampsLen] = p.At, p.Format
		}
		i += run
	}
	b.far = max(b.far, b.pos+n)
}
