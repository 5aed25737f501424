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

// ReadFrame implements media.Source. It returns a complete frame at once. It conceals lost packets, and inserts silence
// if nothing arrives. It adds or drops frames to stay within 200 ms of the local clock, if possible in silence. Packets
// that arrived before the first call are dropped.
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
		if s.ended.Load() {
			return io.EOF
		}
		r.Drain(&s.in)
		if r.Next(f, time.Since(s.opened), s) {
			s.detectTones(f)
			return nil
		}
		<-s.wake
	}
}
