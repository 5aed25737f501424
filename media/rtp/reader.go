package rtp

import (
	"fmt"
	"io"
	"time"

	"github.com/parley-voice/parley/media"
)

// Arrived implements media.Arrival.
func (s *Session) Arrived() (time.Time, bool) {
	at, measured := s.reader.Arrived()
	if !measured {
		return time.Time{}, false
	}
	return s.opened.Add(at), true
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
	r := s.reader
	if !r.Begun() {
		r.Begin(s.Rate(), time.Since(s.opened))
		s.read.Store(true)
	}
	for {
		select {
		case <-s.done:
			return io.EOF
		default:
		}
		r.Drain(&s.in)
		if r.Next(f, time.Since(s.opened), s) {
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
