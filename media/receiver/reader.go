// Package receiver turns a stream of packets into frames: it orders and decodes the packets, conceals losses, and
// corrects clock drift. It reads no clock: time is an argument.
package receiver

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/plc"
)

// Limits for the correction of drift between the remote and the local clock.
const (
	driftSlack  = 80 * time.Millisecond  // drift that is tolerated
	driftMax    = 120 * time.Millisecond // with more drift, frames of speech are added or dropped too
	driftRepair = 100 * time.Millisecond // time between two corrections
)

// Reader reads one incoming stream. All methods except Counts must be called from the same goroutine. They allocate
// nothing after Start.
type Reader struct {
	jitter    *jitter.Buffer
	conceal   *plc.Concealer
	count     counters
	started   bool
	arrived   time.Duration // arrival time of the frame last read
	measured  bool          // arrived is valid
	concealed bool          // the frame last read conceals lost audio
	addFrame  bool          // Next adds a frame to correct drift
	store     PacketStore   // nil if the codec needs no store
	stored    bool          // the next packet in the ring is already in store
	losses    jitter.LossTracker
	repaired  time.Duration // time of the last drift correction
	wire      [jitter.FrameLen]byte
}

// Decoder decodes the payloads of one stream in order. format says how a payload is encoded.
type Decoder interface {
	DecodeAs(dst []int16, payload []byte, format uint8)
}

// PacketStore is for codecs that do not have one byte of payload per clock tick. Store keeps the packet and replaces
// the payload by a placeholder of one byte per tick. The Decoder later gets the placeholder.
type PacketStore interface{ Store(p *jitter.Packet) }

// Counts holds the numbers of packets and frames of a stream.
type Counts struct {
	Lost      int64 // packets that never arrived
	Late      int64 // packets that arrived after their frame was read
	Duplicate int64 // packets that arrived more than once
	Concealed int64 // frames with missing audio, while the remote party was sending
	Resynced  int64 // restarts of the remote party's timeline
	Added     int64 // frames added because the remote clock is slow
	Skipped   int64 // frames dropped because the remote clock is fast
}

// Add adds the counts of another stream.
func (c *Counts) Add(o Counts) {
	c.Lost += o.Lost
	c.Late += o.Late
	c.Duplicate += o.Duplicate
	c.Concealed += o.Concealed
	c.Resynced += o.Resynced
	c.Added += o.Added
	c.Skipped += o.Skipped
}

type counters struct {
	lost, late, duplicate, concealed, resynced, added, skipped atomic.Int64
}

// New returns a Reader of a stream that has not started.
func New() *Reader { return &Reader{jitter: jitter.New()} }

// NewWithStore returns a Reader that passes each packet to store first.
func NewWithStore(store PacketStore) *Reader { return &Reader{jitter: jitter.New(), store: store} }

// Counts returns the counts so far. It may be called from any goroutine.
func (r *Reader) Counts() Counts {
	n := &r.count
	return Counts{
		Lost: n.lost.Load(), Late: n.late.Load(), Duplicate: n.duplicate.Load(), Concealed: n.concealed.Load(),
		Resynced: n.resynced.Load(), Added: n.added.Load(), Skipped: n.skipped.Load(),
	}
}

// HasStarted reports whether Start was called.
func (r *Reader) HasStarted() bool { return r.started }

// Arrived returns the time at which the packet of the last frame arrived, or false if the frame was concealed or
// added.
func (r *Reader) Arrived() (time.Duration, bool) { return r.arrived, r.measured }

// IsConcealed reports whether the last frame replaces lost audio.
func (r *Reader) IsConcealed() bool { return r.concealed }

// Start starts the stream at now. rate is the sample rate of the frames in Hz.
func (r *Reader) Start(rate int, now time.Duration) {
	r.started = true
	r.conceal = plc.New(rate)
	r.jitter.Start(now)
}

// Drain moves packets from the ring to the jitter buffer while the buffer has room. After a long pause, packets remain
// in the ring until Next has made room.
func (r *Reader) Drain(in *jitter.Ring) {
	received := false
	for p := in.Peek(); p != nil; p = in.Peek() {
		if r.store != nil && !r.stored {
			r.store.Store(p)
			r.stored = true
		}
		if r.jitter.Full(p) {
			break
		}
		r.stored = false
		r.losses.Observe(p)
		r.jitter.Put(p)
		in.Drop()
		received = true
	}
	if received {
		n := r.jitter.Stats()
		r.count.lost.Store(n.Lost)
		r.count.duplicate.Store(n.Duplicate)
		r.count.late.Store(n.Late)
		r.count.resynced.Store(n.Resynced)
		r.count.concealed.Add(r.losses.Update(n))
	}
}

// Next fills f and returns true if a frame is ready at now. Start must have been called before.
func (r *Reader) Next(f media.Frame, now time.Duration, d Decoder) bool {
	if r.addFrame {
		r.addFrame, r.measured, r.concealed = false, false, true
		r.conceal.Conceal(f)
		return true
	}
	for {
		switch r.jitter.Ready(now) {
		case jitter.Complete:
			if r.decode(f, now, d) {
				return true
			}
		case jitter.Partial:
			if r.concealNext(f, now, d) {
				return true
			}
		case jitter.Wait:
			return false
		}
	}
}

// decode decodes the next frame, which is complete. It returns false if drift correction drops the frame.
func (r *Reader) decode(f media.Frame, now time.Duration, d Decoder) bool {
	r.jitter.Copy(r.wire[:])
	const half = jitter.FrameLen / 2
	if first, second := r.jitter.Format(0), r.jitter.Format(half); first == second {
		d.DecodeAs(f, r.wire[:], first)
	} else {
		d.DecodeAs(f[:len(f)/2], r.wire[:half], first)
		d.DecodeAs(f[len(f)/2:], r.wire[half:], second)
	}
	r.arrived, r.measured, r.concealed = r.jitter.Arrived(), true, false
	r.jitter.Advance()
	if ahead := r.jitter.Drift(); ahead > driftSlack || ahead < -driftSlack {
		spare := ahead > driftMax || ahead < -driftMax || r.conceal.IsBackground(f)
		if spare && !r.repairDrift(ahead, now) {
			r.conceal.Skip()
			return false
		}
	}
	r.conceal.Receive(f)
	return true
}

// repairDrift makes Next add a frame if the remote clock is slow. It returns false if the remote clock is fast; the
// caller must then drop the current frame.
func (r *Reader) repairDrift(ahead, now time.Duration) bool {
	switch {
	case now-r.repaired < driftRepair:
		return true
	case ahead > driftSlack:
		r.repaired = now
		r.jitter.Skew(-1)
		r.count.skipped.Add(1)
		return false
	case ahead < -driftSlack:
		r.repaired, r.addFrame = now, true
		r.jitter.Skew(1)
		r.count.added.Add(1)
	}
	return true
}

// concealNext conceals the missing parts of the next frame. It returns false if drift correction drops the frame.
func (r *Reader) concealNext(f media.Frame, now time.Duration, d Decoder) bool {
	r.measured, r.concealed = false, false
	level, silent := r.jitter.Comfort()
	first, _ := r.jitter.NextRun(0)
	switch {
	case !r.jitter.HasAudio():
		clear(f)
	case silent && first == jitter.FrameLen:
		if !r.repairDrift(r.jitter.Drift(), now) {
			r.jitter.Advance()
			return false
		}
		r.conceal.ComfortNoise(f, level)
	default:
		r.concealed = !silent
		if !silent && r.losses.Conceal(r.jitter) {
			r.count.concealed.Add(1)
		}
		r.conceal.Conceal(f)
		r.patch(f, d)
	}
	r.jitter.Advance()
	return true
}

func (r *Reader) patch(f media.Frame, d Decoder) {
	r.jitter.Copy(r.wire[:])
	each, end := len(f)/jitter.FrameLen, 0
	for from, to := r.jitter.NextRun(0); from < jitter.FrameLen; from, to = r.jitter.NextRun(to) {
		d.DecodeAs(f[from*each:to*each], r.wire[from:to], r.jitter.Format(from))
		end = to
	}
	if end > 0 {
		r.conceal.Patch(f, end == jitter.FrameLen)
	}
}

// DisableDriftRepair turns off drift correction, for a sender that uses the local clock.
func (r *Reader) DisableDriftRepair() { r.repaired = math.MaxInt64 / 2 }
