package rtp

import "sync/atomic"

// Stats are packet and frame counts of a session.
type Stats struct {
	Sent            int64 // packets
	Unsent          int64 // packets that the kernel rejected, and frames without a target address
	Received        int64 // packets of audio, comfort noise or DTMF
	Lost            int64 // packets
	Late            int64 // packets that arrived after their frame was read
	Duplicate       int64 // packets
	Concealed       int64 // frames with missing audio while the remote party was sending
	Ignored         int64 // packets from an unexpected source
	Malformed       int64 // packets that are not RTP or too long
	Unknown         int64 // packets of a payload type that was not negotiated
	ReportsSent     int64 // RTCP
	ReportsReceived int64 // RTCP
	Forged          int64 // packets that fail authentication or are replayed (RFC 3711)
	Overflow        int64 // packets dropped because the reader paused
	KeysLost        int64 // digits dropped because the queue was full
	Resynced        int64 // restarts of the remote timeline
	Underruns       int64 // frames skipped because the clock lagged
	Added           int64 // frames, because the remote clock is slow
	Skipped         int64 // frames dropped because the remote clock is fast
}

func (s *Stats) add(o Stats) {
	s.Sent += o.Sent
	s.Unsent += o.Unsent
	s.Received += o.Received
	s.Lost += o.Lost
	s.Late += o.Late
	s.Duplicate += o.Duplicate
	s.Concealed += o.Concealed
	s.Ignored += o.Ignored
	s.Malformed += o.Malformed
	s.Unknown += o.Unknown
	s.Forged += o.Forged
	s.ReportsSent += o.ReportsSent
	s.ReportsReceived += o.ReportsReceived
	s.Overflow += o.Overflow
	s.KeysLost += o.KeysLost
	s.Resynced += o.Resynced
	s.Underruns += o.Underruns
	s.Added += o.Added
	s.Skipped += o.Skipped
}

// counters are the counts that the clock updates; the reader has its own.
type counters struct {
	sent, unsent, received, ignored, malformed, overflow, keysLost, underruns atomic.Int64
	unknown, forged, reports, reported                                        atomic.Int64
}

// Stats returns the counts so far.
func (s *Session) Stats() Stats {
	n, r := &s.count, s.reader.Counts()
	return Stats{
		Sent:            n.sent.Load(),
		Unsent:          n.unsent.Load(),
		Received:        n.received.Load(),
		Lost:            r.Lost,
		Late:            r.Late,
		Duplicate:       r.Duplicate,
		Concealed:       r.Concealed,
		Ignored:         n.ignored.Load(),
		Malformed:       n.malformed.Load(),
		Unknown:         n.unknown.Load(),
		Forged:          n.forged.Load(),
		ReportsSent:     n.reports.Load(),
		ReportsReceived: n.reported.Load(),
		Overflow:        n.overflow.Load(),
		KeysLost:        n.keysLost.Load(),
		Resynced:        r.Resynced,
		Underruns:       n.underruns.Load(),
		Added:           r.Added,
		Skipped:         r.Skipped,
	}
}
