package jitter

import (
	"math"
	"time"
)

const (
	frameTicks = int64(FrameLen)
	windowLen  = 8192 // maximum number of buffered ticks, a power of two
	stampLen   = 80   // ticks that share one arrival time and one format
	stampsLen  = 256  // number of such groups, enough for two windows; a power of two

	maxEarly          = 500 * time.Millisecond // a packet that is early by more than this starts a new timeline
	floorSpan         = 2 * time.Second        // the shortest transit is kept for one to two of these spans
	lateRun           = 5                      // number of late packets in a row that start a new timeline
	lateSpan          = 80 * time.Millisecond  // minimum duration of this run; a burst of old packets is shorter
	lateSpread        = 100 * time.Millisecond // maximum difference of lateness within this run
	silentAfter       = time.Second            // time without packets after which a late packet with a marker starts a new timeline
	previousSourceFor = 100 * time.Millisecond // time in which packets of the previous source may still arrive
)

// Buffer orders the packets of one stream by the sender's timestamps and cuts them into frames. Positions on this
// timeline are ticks and never wrap. A Buffer must be used by one goroutine only. It allocates nothing after New.
//
// A complete frame can be read at once. A frame with missing packets can be read at its expected arrival time plus a
// delay, the depth. The expected arrival time assumes the shortest recent transit. The depth follows the jitter, from
// 20 to 120 ms.
type Buffer struct {
	bytes  [windowLen]byte
	have   [windowLen / 64]uint64
	stamps [stampsLen]time.Duration
	format [stampsLen]uint8

	next int64 // position of the next frame
	end  int64 // end of the latest packet

	hasAudio   bool // a packet with audio has arrived
	source, ts uint32
	pos        int64 // position of the timestamp ts
	last       time.Duration
	former     uint32        // SSRC of the previous source
	changed    time.Duration // time at which the source last changed; valid if skips > 0
	silent     bool          // the last packet was comfort noise
	noise      uint8         // level of the comfort noise

	floor, prev time.Duration // shortest transit in the current and in the previous span
	floorSince  time.Duration
	depth       depth

	lates     int
	lateAt    time.Duration
	lateSince time.Duration

	startedAt time.Duration
	skew      time.Duration // duration of frames that the reader added, minus those that it dropped

	seqs  sequence
	late  int64
	skips int64
}

// New returns an empty buffer.
func New() *Buffer {
	return &Buffer{prev: math.MaxInt64, depth: depth{before: firstDelay}}
}

// Start starts the timeline at now. From then on, frames of silence are due if no packets arrive.
func (b *Buffer) Start(now time.Duration) {
	b.startedAt, b.skew = now-span(b.next), 0
	b.floor, b.floorSince = b.startedAt, now
}

// Put adds a packet. It uses only the sequence number of a Key packet, because the timestamps of telephone events do
// not continue those of the audio (RFC 4733 section 2.5.1.2). Put ignores a Key packet that has another SSRC than the
// audio, and any other packet with a payload longer than MaxPayload.
func (b *Buffer) Put(p *Packet) {
	if p.Kind == Key {
		if !b.hasAudio || p.SSRC == b.source {
			b.seqs.observe(p.SSRC, p.Seq)
		}
		return
	}
	if len(p.Payload) > MaxPayload {
		return
	}
	if b.isFromPreviousSource(p) {
		b.late++
		return
	}
	if fresh := b.seqs.observe(p.SSRC, p.Seq); !fresh {
		return
	}
	if !b.hasAudio || p.SSRC != b.source {
		b.resync(p)
	}
	if !b.place(p) {
		return
	}
	b.last, b.silent = p.At, p.Kind == Comfort
	if b.silent {
		b.noise = quietest
		if len(p.Payload) > 0 {
			b.noise = p.Payload[0] & quietest
		}
		return
	}
	b.store(p)
}

// Full reports whether p does not fit into the window although the next frame is complete. The reader should then
// read that frame first. Otherwise p would start a new timeline.
func (b *Buffer) Full(p *Packet) bool {
	if !b.hasAudio || p.Kind != Speech || p.SSRC != b.source {
		return false
	}
	end := b.pos + int64(int32(p.Timestamp-b.ts)) + int64(len(p.Payload)) //nolint:gosec // modular difference
	return end > b.next+windowLen && b.isComplete()
}

// quietest is the lowest level of comfort noise, in -dBov (decibels below overload).
const quietest = 127

// isFromPreviousSource reports whether p comes from the previous source and was delayed.
func (b *Buffer) isFromPreviousSource(p *Packet) bool {
	return b.skips > 0 && p.SSRC == b.former && p.SSRC != b.source && p.At-b.changed < previousSourceFor
}

// place sets the position of a packet. It starts a new timeline if the packet does not fit. It returns false for a late
// packet.
func (b *Buffer) place(p *Packet) bool {
	pos := b.pos + int64(int32(p.Timestamp-b.ts)) //nolint:gosec // modular difference
	end := pos + int64(len(p.Payload))
	transit := p.At - span(pos)
	switch {
	case transit < b.quickest()-maxEarly || end > b.next+windowLen:
		b.resync(p)
	case end <= b.next && p.Kind == Comfort:
		// The noise level is used in spite of the old timestamp. The packet does not count as late, because some
		// senders stop their clock in silence.
	case end <= b.next:
		b.depth.learn(transit-b.quickest(), p.At)
		if !b.tooLate(p, transit) {
			return false
		}
		b.resync(p)
	default:
		pos = b.align(p, pos)
		b.lates = 0
		b.ts, b.pos = p.Timestamp, pos
		b.learn(p.At-span(pos), p.At)
	}
	return true
}

// align shifts the timeline by less than a frame if speech begins in the middle of a frame after intended silence.
// Otherwise every frame would need two packets.
func (b *Buffer) align(p *Packet, pos int64) int64 {
	off := (pos - b.next) % frameTicks
	if off <= 0 || b.end > b.next || p.Kind != Speech || !p.Marker && !b.silent {
		return pos
	}
	if off < frameTicks/2 {
		return pos - off
	}
	return pos + frameTicks - off
}

func (b *Buffer) quickest() time.Duration { return min(b.floor, b.prev) }

func (b *Buffer) resync(p *Packet) {
	if b.hasAudio {
		b.skips++
		if p.SSRC != b.source {
			b.former, b.changed = b.source, p.At
		}
	}
	b.have = [windowLen / 64]uint64{}
	b.hasAudio, b.source, b.ts, b.pos, b.end, b.lates = true, p.SSRC, p.Timestamp, b.next, b.next, 0
	b.floor, b.prev, b.floorSince = p.At-span(b.next), math.MaxInt64, p.At
}

// learn keeps the shortest transit of the last two spans only. If the remote clock is slow, this transit grows, and
// frames become due later.
func (b *Buffer) learn(transit, at time.Duration) {
	if at-b.floorSince > floorSpan {
		b.prev, b.floor, b.floorSince = b.floor, transit, at
	}
	b.floor = min(b.floor, transit)
	b.depth.learn(transit-b.quickest(), at)
}

// tooLate counts a late packet. It reports whether the packet starts a new timeline, because the path became longer
// or the sender's clock stopped.
func (b *Buffer) tooLate(p *Packet, transit time.Duration) bool {
	if p.Marker && (b.silent || p.At-b.last > silentAfter) || b.silent && transit > b.quickest()+maxEarly {
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
	for i := max(0, b.next-b.pos); i < n; { // handle at most one word of the bitmap have at a time
		at := b.pos + i
		run := min(64-at%64, n-i)
		copy(b.bytes[at%windowLen:], p.Payload[i:i+run])
		b.have[at%windowLen/64] |= mask(run) << (at % 64)
		for stamp := at / stampLen; stamp <= (at+run-1)/stampLen; stamp++ {
			b.stamps[stamp%stampsLen], b.format[stamp%stampsLen] = p.At, p.Format
		}
		i += run
	}
	b.end = max(b.end, b.pos+n)
}
