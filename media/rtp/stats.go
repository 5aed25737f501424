package rtp

import (
	"sync/atomic"

	"github.com/parley-voice/parley/media/receiver"
)

// Stats holds the counts of a session.
type Stats struct {
	receiver.Counts

	Sent            int64 // packets sent
	Unsent          int64 // packets that the kernel rejected, and frames without a target address
	Received        int64 // received packets of audio, comfort noise or DTMF
	Ignored         int64 // packets from unexpected sources
	Malformed       int64 // packets that are too long or not RTP
	Unknown         int64 // packets with a payload type that was not negotiated
	ReportsSent     int64 // RTCP packets sent
	ReportsReceived int64 // RTCP packets received
	Forged          int64 // packets that were forged or replayed (RFC 3711)
	Overflow        int64 // packets dropped because the reader paused
	KeysLost        int64 // digits dropped because the queue was full
	Underruns       int64 // frames skipped because the clock was late
}

func (s *Stats) add(o Stats) {
	s.Add(o.Counts)
	s.Sent += o.Sent
	s.Unsent += o.Unsent
	s.Received += o.Received
	s.Ignored += o.Ignored
	s.Malformed += o.Malformed
	s.Unknown += o.Unknown
	s.Forged += o.Forged
	s.ReportsSent += o.ReportsSent
	s.ReportsReceived += o.ReportsReceived
	s.Overflow += o.Overflow
	s.KeysLost += o.KeysLost
	s.Underruns += o.Underruns
}

// counters are the counts that the clock updates. The reader has its own.
type counters struct {
	sent, unsent, received, ignored, malformed, overflow, keysLost, underruns atomic.Int64
	unknown, forged, reports, reported                                        atomic.Int64
}

// Stats returns the counts so far.
func (s *Session) Stats() Stats {
	n := &s.count
	return Stats{
		Counts:          s.reader.Counts(),
		Sent:            n.sent.Load(),
		Unsent:          n.unsent.Load(),
		Received:        n.received.Load(),
		Ignored:         n.ignored.Load(),
		Malformed:       n.malformed.Load(),
		Unknown:         n.unknown.Load(),
		Forged:          n.forged.Load(),
		ReportsSent:     n.reports.Load(),
		ReportsReceived: n.reported.Load(),
		Overflow:        n.overflow.Load(),
		KeysLost:        n.keysLost.Load(),
		Underruns:       n.underruns.Load(),
	}
}
