package rtp

import (
	"fmt"
	"io"
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

// A reader is the state of the incoming stream at its reader. Its clock is an
// argument.
type reader struct {
	jitter   *jitter.Buffer
	conceal  *conceal.Concealer
	count    *counters
	begun    bool
	arrived  time.Duration // of the last frame
	measured bool          // and whether it did arrive
	made     bool          // it stands for sound that did not
	missed   int           // such frames in a row
	more     bool          // a frame is to be added
	holes    jitter.Holes
	repaired time.Duration // when the last was added, or left out
	wire     [jitter.FrameLen]byte
}

// Arrived implements media.Arrival.
func (s *Session) Arrived() (time.Time, bool) {
	r := &s.reader
	if !r.measured {
		return time.Time{}, false
	}
	return s.opened.Add(r.arrived), true
}

// ReadFrame implements media.Source. A frame comes as soon as it is complete;
// lost packets are concealed, and silence comes in time where there are none.
// Frames are added or left out, in silence where there is some, so that they
// keep within 200 ms of our clock. What came in before the first call is not
// heard.
func (s *Session) ReadFrame(f media.Frame) error {
	if n := media.FrameLen(s.Rate()); len(f) != n {
		return fmt.Errorf("read frame of %d samples: want %d", len(f), n)
	}
	r := &s.reader
	if !r.begun {
		r.begin(s.Rate(), time.Since(s.opened))
		s.read.Store(true)
	}
	for {
		select {
		case <-s.done:
			return io.EOF
		default:
		}
		r.drain(&s.in)
		if r.next(f, time.Since(s.opened), s) {
			s.overhear(f)
			return nil
		}
		select {
		case <-s.done:
			return io.EOF
		case <-s.wake:
		}
	}
}

// A decoder decodes the audio of one stream, in order, each payload by its
// format. A session is one.
type decoder interface {
	decode(dst []int16, payload []byte, format uint8)
}

// begin starts the stream at now, with frames of rate (Hz).
func (r *reader) begin(rate int, now time.Duration) {
	r.begun = true
	r.conceal = conceal.New(rate)
	r.jitter.Begin(now)
}

// drain puts what came in into the jitter buffer, as far as it has room: a
// reader that slept takes the frames that are there first.
func (r *reader) drain(in *jitter.Ring) {
	came := false
	for p := in.Peek(); p != nil && !r.jitter.Full(p); p = in.Peek() {
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

// next fills f with the next frame, where one is ready at now.
func (r *reader) next(f media.Frame, now time.Duration, d decoder) bool {
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
func (r *reader) take(f media.Frame, now time.Duration, d decoder) bool {
	r.jitter.Copy(r.wire[:])
	const half = jitter.FrameLen / 2
	if first, second := r.jitter.Format(0), r.jitter.Format(half); first == second {
		d.decode(f, r.wire[:], first)
	} else {
		d.decode(f[:len(f)/2], r.wire[:half], first)
		d.decode(f[len(f)/2:], r.wire[half:], second)
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
func (r *reader) repair(ahead, now time.Duration) bool {
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
func (r *reader) fill(f media.Frame, now time.Duration, d decoder) bool {
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
func (r *reader) patch(f media.Frame, d decoder) {
	r.jitter.Copy(r.wire[:])
	each, end := len(f)/jitter.FrameLen, 0
	for from, to := r.jitter.Run(0); from < jitter.FrameLen; from, to = r.jitter.Run(to) {
		d.decode(f[from*each:to*each], r.wire[from:to], r.jitter.Format(from))
		end = to
	}
	if end > 0 {
		r.conceal.Amend(f, end == jitter.FrameLen)
	}
}
