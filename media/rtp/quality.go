package rtp

import (
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/emodel"
)

// Quality implements media.Gauge. What the party hears of us is known once it
// has reported.
func (s *Session) Quality() media.Quality {
	n := s.Stats()
	q := media.Quality{Concealed: time.Duration(n.Concealed) * media.FrameTime, Underruns: n.Underruns}
	t := s.params.Load()
	if t == nil {
		return q
	}
	q.Codec = t.Codec.Name()
	c := &s.control
	c.mu.Lock()
	defer c.mu.Unlock()
	q.RoundTrip = c.trip
	heard := c.heard.Total()
	q.Heard = media.Stretch{Packets: heard.Packets, Lost: heard.Lost, Jitter: c.heard.Jitter()}
	q.Heard.MOS = emodel.Opinion(q.Codec, q.Heard, n.Late, c.trip)
	if !c.told {
		return q
	}
	lost := max(0, c.theirs.Lost)
	q.Sent = media.Stretch{
		Packets: max(0, c.packets-lost), Lost: lost,
		Jitter: min(believed, time.Duration(c.theirs.Jitter)*time.Second/Rate),
	}
	q.Sent.MOS = emodel.Opinion(q.Codec, q.Sent, 0, c.trip)
	return q
}
