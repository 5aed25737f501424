package rtp

import "sync/atomic"

// Stats counts packets and frames of a session.
type Stats struct {
	Sent      int64 // packets
	Unsent    int64 // packets that the kernel did not take, and frames that had nowhere to go
	Received  int64 // packets of audio, comfort noise or digits from the party
	Lost      int64 // packets that never came
	Late      int64 // packets that came after their frame was given up
	Duplicate int64 // packets that came twice
	Concealed int64 // frames with holes, while the party was sending
	Ignored   int64 // packets from another source than the party
	Malformed int64 // packets that are not RTP, or longer than any
	Unknown   int64 // packets of no payload type agreed on
	Reports   int64 // reports sent (RTCP)
	Reported  int64 // reports from the party
	Forged    int64 // packets that came before, or under another key than the party's (RFC 3711)
	Overflow  int64 // packets dropped because the reader slept
	KeysLost  int64 // digits dropped because nobody took them
	Resynced  int64 // new timelines: the party changed its stream
	Underruns int64 // frames skipped because the clock was too far behind
	Added     int64 // frames added because the party's clock is slower than ours
	LeftOut   int64 // frames left out because it is faster
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
	s.Reports += o.Reports
	s.Reported += o.Reported
	s.Overflow += o.Overflow
	s.KeysLost += o.KeysLost
	s.Resynced += o.Resynced
	s.Underruns += o.Underruns
	s.Added += o.Added
	s.LeftOut += o.LeftOut
}

// counters are Stats while they grow, but for the reader's. The clock writes them.
type counters struct {
	sent, unsent, received, ignored, malformed, overflow, keysLost, underruns atomic.Int64
	unknown, forged, reports, reported                                        atomic.Int64
}

// Stats returns the counts so far.
func (s *Session) Stats() Stats {
	n, r := &s.count, s.reader.Counts()
	return Stats{
		Sent:      n.sent.Load(),
		Unsent:    n.unsent.Load(),
		Received:  n.received.Load(),
		Lost:      r.Lost,
		Late:      r.Late,
		Duplicate: r.Duplicate,
		Concealed: r.Concealed,
		Ignored:   n.ignored.Load(),
		Malformed: n.malformed.Load(),
		Unknown:   n.unknown.Load(),
		Forged:    n.forged.Load(),
		Reports:   n.reports.Load(),
		Reported:  n.reported.Load(),
		Overflow:  n.overflow.Load(),
		KeysLost:  n.keysLost.Load(),
		Resynced:  r.Resynced,
		Underruns: n.underruns.Load(),
		Added:     r.Added,
		LeftOut:   r.LeftOut,
	}
}
