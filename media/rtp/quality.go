package rtp

import (
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtcp"
)

// Quality implements media.QualityReporter. Sent is unknown before the first RTCP report.
func (s *Session) Quality() media.Quality {
	n := s.Stats()
	q := media.Quality{Concealed: time.Duration(n.Concealed) * media.FrameTime, Underruns: n.Underruns, Ignored: n.Ignored}
	t := s.params.Load()
	if t == nil {
		return q
	}
	q.Codec = t.Codec.Name()
	c := &s.control
	c.mu.Lock()
	defer c.mu.Unlock()
	q.RoundTrip = c.roundTrip
	total := c.received.Total()
	q.Received = media.DirectionQuality{Packets: total.Packets, Lost: total.Lost, Jitter: c.received.Jitter()}
	q.Received.MOS = rtcp.StreamMOS(q.Codec, q.Received, n.Late, c.roundTrip)
	if !c.hasRemote {
		return q
	}
	lost := max(0, c.remote.Lost)
	q.Sent = media.DirectionQuality{
		Packets: max(0, c.packets-lost), Lost: lost,
		Jitter: min(maxPlausible, time.Duration(c.remote.Jitter)*time.Second/Rate),
	}
	q.Sent.MOS = rtcp.StreamMOS(q.Codec, q.Sent, 0, c.roundTrip)
	return q
}
