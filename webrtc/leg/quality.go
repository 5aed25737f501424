package leg

import (
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/emodel"
)

// reports are what the party told of what it heard of us (RFC 3550 section 6.4).
type reports struct {
	mu     sync.Mutex
	told   bool
	lost   int64
	jitter time.Duration
	trip   time.Duration
}

// believed is the greatest jitter or round trip that a party is believed.
const believed = 10 * time.Second

// reports reads what the party tells, until the connection is closed.
func (p *peer) reports(s *webrtc.RTPSender) {
	for {
		all, _, err := s.ReadRTCP()
		if err != nil {
			return
		}
		now := time.Now()
		for _, r := range all {
			var blocks []rtcp.ReceptionReport
			switch r := r.(type) {
			case *rtcp.ReceiverReport:
				blocks = r.Reports
			case *rtcp.SenderReport:
				blocks = r.Reports
			}
			for _, b := range blocks {
				if w := p.wire(); w != nil && b.SSRC == w.ssrc {
					p.leg.reports.take(b, w.saying.ticks, now)
				}
			}
		}
	}
}

func (r *reports) take(b rtcp.ReceptionReport, ticks uint32, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told, r.lost = true, int64(b.TotalLost)
	r.jitter = min(believed, time.Duration(b.Jitter)*time.Second/time.Duration(clockRate*ticks))
	if b.LastSenderReport == 0 {
		return
	}
	trip := ntp(now) - b.LastSenderReport - b.Delay // wraps on a circle
	if d := time.Duration(trip) * time.Second >> 16; d < believed {
		r.trip = d
	}
}

// ntp is the middle of the NTP time of a moment: seconds, 16 bits of them and 16
// of their fraction.
func ntp(t time.Time) uint32 {
	const since1900 = 2_208_988_800
	seconds := uint64(t.Unix() + since1900)        //nolint:gosec // after 1900
	fraction := uint64(t.Nanosecond()) << 16 / 1e9 //nolint:gosec // positive
	return uint32(seconds&0xffff)<<16 | uint32(fraction&0xffff)
}

// Quality implements media.Gauge.
func (l *Leg) Quality() media.Quality {
	c := l.reader.Counts()
	q := media.Quality{Concealed: time.Duration(c.Concealed) * media.FrameTime, Underruns: l.sender.underruns.Load()}
	l.in.Lock()
	q.Codec = l.receiver.codec
	heard := l.receiver.seen.Total()
	q.Heard = media.Stretch{Packets: heard.Packets, Lost: heard.Lost, Jitter: l.receiver.seen.Jitter()}
	l.in.Unlock()
	r := &l.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	q.RoundTrip = r.trip
	q.Heard.MOS = emodel.Opinion(q.Codec, q.Heard, c.Late, r.trip)
	if r.told {
		lost := max(0, r.lost)
		q.Sent = media.Stretch{Packets: max(0, l.sender.packets.Load()-lost), Lost: lost, Jitter: r.jitter}
		if s := l.sender.said.Load(); s != nil {
			q.Sent.MOS = emodel.Opinion(s.name, q.Sent, 0, r.trip)
		}
	}
	return q
}
