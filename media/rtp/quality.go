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
	q.Heard.MOS = opinion(q.Codec, q.Heard, n.Late, c.trip)
	if !c.told {
		return q
	}
	lost := max(0, c.theirs.Lost)
	q.Sent = media.Stretch{
		Packets: max(0, c.packets-lost), Lost: lost,
		Jitter: min(believed, time.Duration(c.theirs.Jitter)*time.Second/Rate),
	}
	q.Sent.MOS = opinion(q.Codec, q.Sent, 0, c.trip)
	return q
}

// opinion rates a stretch of which late packets came too late to be heard. The
// delay is half of the round trip, a packet, and a buffer of twice the jitter.
func opinion(codec string, s media.Stretch, late int64, trip time.Duration) float64 {
	all := s.Packets + s.Lost
	if s.Packets == 0 || all == 0 {
		return 0
	}
	lost := float64(s.Lost+late) / float64(all)
	return emodel.MOS(codec, lost, trip/2+media.FrameTime+2*s.Jitter)
}
