// Package stream hears one stream of packets: it puts them in order, decodes
// them, makes up what was lost, and keeps to our clock. It is pure but for its
// counts: time is an argument.
package stream

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/conceal"
	"github.com/parley-voice/parley/media/jitter"
)

// How the frames read keep to our clock, where the party's runs otherwise.
const (
	driftSlack  = 80 * time.Millisecond  // that is let be
	driftMost   = 120 * time.Millisecond // beyond which not even speech is spared
	driftRepair = 100 * time.Millisecond // between two frames added, or left out
)

// A Reader is an incoming stream at its reader. Its methods belong to one
// goroutine, save Counts; they allocate nothing after Begin.
type Reader struct {
	jitter   *jitter.Buffer
	conceal  *conceal.Concealer
	count    counters
	begun    bool
	arrived  time.Duration // of the last frame
	measured bool          // and whether it did arrive
	made     bool          // it stands for sound that did not
	more     bool          // a frame is to be added
	keeper   Keeper        // nil where packets are what they are
	kept     bool          // it has the packet that comes next
	holes    jitter.Holes
	repaired time.Duration // when the last was added, or left out
	wire     [jitter.FrameLen]byte
}

// A Decoder decodes the audio of one stream, in order, each payload by its
// format.
type Decoder interface {
	DecodeAs(dst []int16, payload []byte, format uint8)
}

// A Keeper is a Decoder of packets that have no byte for each tick of the clock.
// It keeps them, and makes their payload one that has, which it is given back to
// decode.
type Keeper interface{ Keep(p *jitter.Packet) }

// Counts are what became of the packets and frames of a stream.
type Counts struct {
	Lost      int64 // packets that never came
	Late      int64 // packets that came after their frame was given up
	Duplicate int64 // packets that came twice
	Concealed int64 // frames with holes, while the party was sending
	Resynced  int64 // new timelines: the party changed its stream
	Added     int64 // frames added because the party's clock is slower than ours
	LeftOut   int64 // frames left out because it is faster
}

type counters struct {
	lost, late, duplicate, concealed, resynced, added, leftOut atomic.Int64
}

// New returns a Reader of a stream that has not begun.
func New() *Reader { return &Reader{jitter: jitter.New()} }

// NewKept returns a Reader whose packets keeper keeps.
func NewKept(keeper Keeper) *Reader { return &Reader{jitter: jitter.New(), keeper: keeper} }

// Counts may be asked from any goroutine.
func (r *Reader) Counts() Counts {
	n := &r.count
	return Counts{
		Lost: n.lost.Load(), Late: n.late.Load(), Duplicate: n.duplicate.Load(), Concealed: n.concealed.Load(),
		Resynced: n.resynced.Load(), Added: n.added.Load(), LeftOut: n.leftOut.Load(),
	}
}

// Begun is whether Begin was called.
func (r *Reader) Begun() bool { return r.begun }

// Arrived is when the packet that holds the last frame came in. It is false
// where the frame was made up.
func (r *Reader) Arrived() (time.Duration, bool) { return r.arrived, r.measured }

// Made is whether the last frame stands for sound that was lost.
func (r *Reader) Made() bool { return r.made }

// Begin starts the stream at now, with frames of rate (Hz).
func (r *Reader) Begin(rate int, now time.Duration) {
	r.begun = true
	r.conceal = conceal.New(rate)
	r.jitter.Begin(now)
}

// Drain puts what came in into the jitter buffer, as far as it has room: a
// reader that slept takes the frames that are there first.
func (r *Reader) Drain(in *jitter.Ring) {
	came := false
	for p := in.Peek(); p != nil; p = in.Peek() {
		if r.keeper != nil && !r.kept {
			r.keeper.Keep(p)
			r.kept = true
		}
		if r.jitter.Full(p) {
			break
		}
		r.kept = false
		r.holes.See(p)
		r.jitter.Put(p)
		in.Drop()
		came = true
	}
	if came {
		n := r.jitter.Stats()
		r.count.lost.Store(n.Lost)
		r.count.duplicate.Store(n.Duplicate)
		r.count.late.Store(n.Late)
		r.count.resynced.Store(n.Resynced)
		r.count.concealed.Add(r.holes.Learn(n))
	}
}

// Next fills f with the next frame, where one is ready at now. Begin comes before.
func (r *Reader) Next(f media.Frame, now time.Duration, d Decoder) bool {
	if r.more {
		r.more, r.measured, r.made = false, false, true
		r.conceal.Lost(f)
		return true
	}
	for {
		switch r.jitter.Ready(now) {
		case jitter.Whole:
			if r.take(f, now, d) {
				return true
			}
		case jitter.Holed:
			if r.fill(f, now, d) {
				return true
			}
		case jitter.Wait:
			return false
		}
	}
}

// take decodes the next frame, which is complete. It is false where the frame
// is left out.
func (r *Reader) take(f media.Frame, now time.Duration, d Decoder) bool {
	r.jitter.Copy(r.wire[:])
	const half = jitter.FrameLen / 2
	if first, second := r.jitter.Format(0), r.jitter.Format(half); first == second {
		d.DecodeAs(f, r.wire[:], first)
	} else {
		d.DecodeAs(f[:len(f)/2], r.wire[:half], first)
		d.DecodeAs(f[len(f)/2:], r.wire[half:], second)
	}
	r.arrived, r.measured, r.made = r.jitter.Arrived(), true, false
	r.jitter.Advance()
	if ahead := r.jitter.Ahead(); ahead > driftSlack || ahead < -driftSlack {
		spare := ahead > driftMost || ahead < -driftMost || r.conceal.Still(f)
		if spare && !r.repair(ahead, now) {
			r.conceal.Skip()
			return false
		}
	}
	r.conceal.Good(f)
	return true
}

// repair adds a frame after the next one, or leaves out the next one: then it
// is false.
func (r *Reader) repair(ahead, now time.Duration) bool {
	switch {
	case now-r.repaired < driftRepair:
		return true
	case ahead > driftSlack:
		r.repaired = now
		r.jitter.Skew(-1)
		r.count.leftOut.Add(1)
		return false
	case ahead < -driftSlack:
		r.repaired, r.more = now, true
		r.jitter.Skew(1)
		r.count.added.Add(1)
	}
	return true
}

// fill makes the next frame up, but for what is there of it. It is false where
// the frame is left out.
func (r *Reader) fill(f media.Frame, now time.Duration, d Decoder) bool {
	r.measured, r.made = false, false
	level, hush := r.jitter.Comfort()
	first, _ := r.jitter.Run(0)
	switch {
	case !r.jitter.Heard():
		clear(f)
	case hush && first == jitter.FrameLen:
		if !r.repair(r.jitter.Ahead(), now) {
			r.jitter.Advance()
			return false
		}
		r.conceal.Quiet(f, level)
	default:
		r.made = !hush
		if !hush && r.holes.Fill(r.jitter) {
			r.count.concealed.Add(1)
		}
		r.conceal.Lost(f)
		r.patch(f, d)
	}
	r.jitter.Advance()
	return true
}

// patch puts what is there of the next frame into f.
func (r *Reader) patch(f media.Frame, d Decoder) {
	r.jitter.Copy(r.wire[:])
	each, end := len(f)/jitter.FrameLen, 0
	for from, to := r.jitter.Run(0); from < jitter.FrameLen; from, to = r.jitter.Run(to) {
		d.DecodeAs(f[from*each:to*each], r.wire[from:to], r.jitter.Format(from))
		end = to
	}
	if end > 0 {
		r.conceal.Amend(f, end == jitter.FrameLen)
	}
}

// Steady says that the sender's clock is ours: no frame is added or left out
// from now on.
func (r *Reader) Steady() { r.repaired = math.MaxInt64 / 2 }
