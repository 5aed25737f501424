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

// ReadFrame implements media.Source. A complete frame is returned at once;
// lost packets are concealed, and silence is inserted when nothing arrives.
// Frames are added or dropped, preferably in silence, to stay within 200 ms of
// the local clock. Packets received before the first call are discarded.
func (s *Session) ReadFrame(f media.Frame) error {
	if n := media.FrameLen(s.Rate()); len(f) != n {
		return fmt.Errorf("read frame of %d samples: want %d", len(f), n)
	}
	r := s.reader
	if !r.HasStarted() {
		r.Start(s.Rate(), time.Since(s.opened))
		s.reading.Store(true)
	}
	for {
		select {
		case <-s.done:
			return io.EOF
		default:
		}
		r.Drain(&s.in)
		if r.Next(f, time.Since(s.opened), s) {
			s.detectTones(f)
			return nil
		}
		select {
		case <-s.done:
			return io.EOF
		case <-s.wake:
		}
	}
}
