package rtp

import (
	"fmt"
	"io"
	"time"

	"github.com/parley-voice/parley/media"
)

// A reader is the state of the incoming stream at its reader.
type reader struct {
	jitter  *jitter
	begun   bool
	arrived time.Time      // zero where the last frame had holes
	wire    [frameLen]byte // of one frame, on its way to the codec
	last    [maxFrame]int16
	fade    int // frames concealed in a row
}

// Arrived implements media.Arrival.
func (s *Session) Arrived() (time.Time, bool) {
	at := s.reader.arrived
	return at, !at.IsZero()
}

// ReadFrame implements media.Source. A frame comes as soon as it is complete;
// lost packets are concealed, and silence comes in time where there are none.
// What came in before the first call is not heard.
func (s *Session) ReadFrame(f media.Frame) error {
	if want := media.FrameLen(s.Rate()); len(f) != want {
		return fmt.Errorf("read frame of %d samples: want %d", len(f), want)
	}
	r := &s.reader
	if !r.begun {
		r.begun = true
		r.jitter.begin(time.Since(s.opened))
		s.read.Store(true)
	}
	for {
		select {
		case <-s.done:
			return io.EOF
		default:
		}
		s.drain()
		switch r.jitter.ready(time.Since(s.opened)) {
		case whole:
			s.take(f)
			return nil
		case holed:
			s.conceal(f)
			return nil
		case wait:
		}
		select {
		case <-s.done:
			return io.EOF
		case <-s.wake:
		}
	}
}

// drain puts what came in into the jitter buffer.
func (s *Session) drain() {
	j := s.reader.jitter
	came := false
	for p := s.in.peek(); p != nil; p = s.in.peek() {
		j.put(p)
		s.in.drop()
		came = true
	}
	if came {
		s.count.lost.Store(j.seqs.missing())
		s.count.duplicate.Store(j.seqs.dup)
		s.count.late.Store(j.late)
		s.count.resynced.Store(j.skips)
	}
}

// take decodes the next frame, which is complete.
func (s *Session) take(f media.Frame) {
	r := &s.reader
	for i := range r.wire {
		r.wire[i], _ = r.jitter.at(i)
	}
	s.decode(f, r.wire[:])
	r.arrived = s.opened.Add(r.jitter.arrived())
	r.jitter.advance()
	copy(r.last[:], f)
	r.fade = 0
}

// conceal makes the next frame up: what is there of it, and between that the
// last frame again, fainter each time, until it is silence.
func (s *Session) conceal(f media.Frame) {
	r := &s.reader
	keep := r.gain()
	per := len(f) / frameLen // samples a byte
	for i := 0; i < frameLen; {
		n := 0 // bytes from here that are there
		for i+n < frameLen {
			b, ok := r.jitter.at(i + n)
			if !ok {
				break
			}
			r.wire[n] = b
			n++
		}
		if n > 0 {
			s.decode(f[i*per:(i+n)*per], r.wire[:n])
			i += n
			continue
		}
		for k := i * per; k < (i+1)*per; k++ {
			f[k] = int16(int(r.last[k]) * keep / 4) //nolint:gosec // keep is below 4
		}
		i++
	}
	if r.jitter.heard && !r.jitter.comfort {
		s.count.concealed.Add(1)
	}
	r.fade++
	r.arrived = time.Time{}
	r.jitter.advance()
}

// gain is how much of the last frame is heard again, in quarters.
func (r *reader) gain() int {
	if r.jitter.comfort {
		return 0
	}
	return max(0, 3-r.fade)
}
