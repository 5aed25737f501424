package rtp

import (
	"math"
	"time"
)

const (
	frameTicks  = int64(frameLen)
	windowLen   = 8192                   // ticks of the RTP clock held at most; a power of two
	stampLen    = 80                     // ticks that share one arrival time
	leap        = 500 * time.Millisecond // a packet so much too early comes from another timeline
	floorSpan   = 2 * time.Second        // the quickest packet is remembered for one to two of these
	lateRun     = 5                      // late packets that are a new timeline
	lateSpan    = 80 * time.Millisecond  // over which they must come: a burst of old packets is none
	lateSpread  = 100 * time.Millisecond // by which their lateness may differ
	silentAfter = time.Second            // without packets, a marker begins a new timeline
)

// A jitter buffer puts packets back in order on the sender's timeline and cuts
// it into frames. It is pure: time is an argument, counted since the session
// began. Positions on the timeline are ticks of the RTP clock, of which every
// byte of payload lasts one; they never wrap.
//
// A frame is released as soon as it is complete. Only a hole is waited for,
// until holeDepth after its frame would have come on the quickest path seen lately.
type jitter struct {
	bytes  [windowLen]byte
	have   [windowLen / 64]uint64
	stamps [2 * windowLen / stampLen]time.Duration

	next int64 // position of the next frame to release

	heard       bool // a packet has come
	ssrc, ts    uint32
	pos         int64 // of ts
	last        time.Duration
	comfort     bool
	floor, prev time.Duration // least transit in this span and the one before
	floorSince  time.Duration

	lates     int
	lateAt    time.Duration
	lateSince time.Duration

	seqs  sequence
	late  int64
	skips int64 // new timelines
}

func newJitter() *jitter { return &jitter{prev: math.MaxInt64} }

// begin starts the timeline at now: silence is due from then on.
func (j *jitter) begin(now time.Duration) { j.floor, j.floorSince = now-j.span(j.next), now }

// span is how long so many ticks last.
func (j *jitter) span(ticks int64) time.Duration { return time.Duration(ticks) * time.Second / Rate }

// due is when the hole at the next frame is given up.
func (j *jitter) due() time.Duration {
	return min(j.floor, j.prev) + j.span(j.next) + holeDepth
}

// put takes one packet. The number of a key's packet counts, where it is of
// the sequence that speech is numbered in; its timeline is another (RFC 4733
// section 2.5.1.2).
func (j *jitter) put(s *slot) {
	if s.kind == keyPress {
		if !j.heard || s.ssrc == j.ssrc {
			j.seqs.see(s.ssrc, s.seq)
		}
		return
	}
	if fresh := j.seqs.see(s.ssrc, s.seq); !fresh {
		return
	}
	if !j.heard || s.ssrc != j.ssrc {
		j.resync(s)
	}
	pos := j.pos + int64(int32(s.ts-j.ts)) //nolint:gosec // a difference on a circle
	transit := s.at - j.span(pos)
	end := pos + int64(s.n)
	switch {
	case transit < min(j.floor, j.prev)-leap || end > j.next+windowLen:
		j.resync(s)
	case end <= j.next && s.kind != comfort:
		if !j.tooLate(s, transit) {
			return
		}
		j.resync(s)
	default:
		j.lates = 0
		j.ts, j.pos = s.ts, pos
		j.learn(transit, s.at)
	}
	j.last, j.comfort = s.at, s.kind == comfort
	if !j.comfort {
		j.store(s)
	}
}

// resync makes s the next frame: what came before is of another timeline.
func (j *jitter) resync(s *slot) {
	if j.heard {
		j.skips++
	}
	j.have = [windowLen / 64]uint64{}
	j.heard, j.ssrc, j.ts, j.pos, j.lates = true, s.ssrc, s.ts, j.next, 0
	j.floor, j.prev, j.floorSince = s.at-j.span(j.next), math.MaxInt64, s.at
}

// learn keeps the least transit of the last spans, so that a sender's clock
// that runs slower than ours moves the dues along with it.
func (j *jitter) learn(transit, at time.Duration) {
	if at-j.floorSince > floorSpan {
		j.prev, j.floor, j.floorSince = j.floor, transit, at
	}
	j.floor = min(j.floor, transit)
}

// tooLate counts a late packet, and says whether it is rather the first of a
// new timeline: the path became longer, or the sender's clock stood still.
func (j *jitter) tooLate(s *slot, transit time.Duration) bool {
	if s.marker && s.at-j.last > silentAfter {
		return true
	}
	if off := transit - j.lateAt; j.lates == 0 || off > lateSpread || off < -lateSpread {
		j.lates, j.lateAt, j.lateSince = 0, transit, s.at
	}
	j.lates++
	if j.lates >= lateRun && s.at-j.lateSince >= lateSpan {
		return true
	}
	j.late++
	return false
}

func (j *jitter) store(s *slot) {
	for i := max(0, j.next-j.pos); i < int64(s.n); i++ {
		at := j.pos + i
		j.bytes[at%windowLen] = s.payload[i]
		j.have[at%windowLen/64] |= 1 << (at % 64)
		stamp := &j.stamps[at/stampLen%int64(len(j.stamps))]
		*stamp = s.at
	}
}

// A release is what the jitter buffer has for the reader.
type release uint8

const (
	wait  release = iota // nothing is due yet
	whole                // a frame, complete
	holed                // a frame that is due, with holes or empty
)

// ready says what there is of the next frame at now. Unless it is wait, the
// reader takes the frame with at and goes on with advance.
func (j *jitter) ready(now time.Duration) release {
	complete := true
	for at := j.next; at < j.next+frameTicks && complete; {
		// Whole words at a time, as far as the frame covers them.
		n := min(64-at%64, j.next+frameTicks-at)
		mask := (^uint64(0) >> (64 - n)) << (at % 64)
		complete = j.have[at%windowLen/64]&mask == mask
		at += n
	}
	switch {
	case complete:
		return whole
	case now >= j.due():
		return holed
	default:
		return wait
	}
}

// at returns the byte at offset i of the next frame, where it is there.
func (j *jitter) at(i int) (byte, bool) {
	at := j.next + int64(i)
	return j.bytes[at%windowLen], j.have[at%windowLen/64]&(1<<(at%64)) != 0
}

// arrived is when the last packet of the next frame, a whole one, came in.
func (j *jitter) arrived() time.Duration {
	first := j.next / stampLen
	last := (j.next + frameTicks - 1) / stampLen
	n := int64(len(j.stamps))
	return max(j.stamps[first%n], j.stamps[last%n])
}

// advance goes on to the frame after the next.
func (j *jitter) advance() {
	for at := j.next; at < j.next+frameTicks; {
		n := min(64-at%64, j.next+frameTicks-at)
		j.have[at%windowLen/64] &^= (^uint64(0) >> (64 - n)) << (at % 64)
		at += n
	}
	j.next += frameTicks
}
