package leg

import (
	"sync"
	"time"

	pionrtcp "github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtcp"
)

// reports holds the values of the last remote report (RFC 3550 section 6.4).
type reports struct {
	mu        sync.Mutex
	received  bool
	lost      int64
	jitter    time.Duration
	roundTrip time.Duration
}

// maxPlausible is the maximum jitter that is taken from reports. Round-trip times above it are ignored.
const maxPlausible = 10 * time.Second

func (p *peer) readReports(s *webrtc.RTPSender) {
	for {
		all, _, err := s.ReadRTCP()
		if err != nil {
			return
		}
		now := time.Now()
		for _, r := range all {
			var blocks []pionrtcp.ReceptionReport
			switch r := r.(type) {
			case *pionrtcp.ReceiverReport:
				blocks = r.Reports
			case *pionrtcp.SenderReport:
				blocks = r.Reports
			}
			for _, b := range blocks {
				if w := p.out.Load(); w != nil && b.SSRC == w.ssrc {
					p.leg.reports.update(b, w.codec.ticks, now)
				}
			}
		}
	}
}

func (r *reports) update(b pionrtcp.ReceptionReport, ticks uint32, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received, r.lost = true, int64(b.TotalLost)
	r.jitter = min(maxPlausible, time.Duration(b.Jitter)*time.Second/time.Duration(clockRate*ticks))
	if b.LastSenderReport == 0 {
		return
	}
	trip := rtcp.CompactNTP(rtcp.NTP(now)) - b.LastSenderReport - b.Delay // the difference wraps around
	if d := time.Duration(trip) * time.Second >> 16; d < maxPlausible {
		r.roundTrip = d
	}
}

// Quality implements media.QualityReporter.
func (l *Leg) Quality() media.Quality {
	c := l.reader.Counts()
	q := media.Quality{Concealed: time.Duration(c.Concealed) * media.FrameTime, Underruns: l.sender.underruns.Load()}
	l.receiveMu.Lock()
	q.Codec = l.receiver.codec
	total := l.receiver.stats.Total()
	q.Received = media.DirectionQuality{Packets: total.Packets, Lost: total.Lost, Jitter: l.receiver.stats.Jitter()}
	l.receiveMu.Unlock()
	r := &l.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	q.RoundTrip = r.roundTrip
	q.Received.MOS = rtcp.StreamMOS(q.Codec, q.Received, c.Late, r.roundTrip)
	if r.received {
		lost := max(0, r.lost)
		q.Sent = media.DirectionQuality{Packets: max(0, l.sender.packets.Load()-lost), Lost: lost, Jitter: r.jitter}
		if s := l.sender.codec.Load(); s != nil {
			q.Sent.MOS = rtcp.StreamMOS(s.name, q.Sent, 0, r.roundTrip)
		}
	}
	return q
}
