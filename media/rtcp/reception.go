package rtcp

import "time"

const (
	maxDropout = 3000 // a larger jump of the sequence number means a new stream (RFC 3550 appendix A.1)
	rate       = 8000 // rate of the RTP clock in Hz, for every supported codec
	dupWindow  = 64   // number of recent sequence numbers among which duplicates are recognized
)

// ReceiverStats measures loss and jitter of a received stream (RFC 3550 appendices A.3 and A.8). The zero value is
// ready to use.
type ReceiverStats struct {
	started          bool
	ssrc             uint32
	first            int64 // extended sequence numbers
	highest          int64
	received         int64  // packets since first
	duplicates       int64  // packets since first
	seen             uint64 // bit n is set if packet highest-n was received
	before           Counts // counts of earlier streams
	jitter           float64
	transit          float64
	timed            bool
	reportedExpected int64 // value at the last report
	reportedReceived int64
}

// Counts holds the numbers of received and lost packets.
type Counts struct {
	Packets, Lost int64
}

// ObserveSeq records the sequence number of a packet.
func (r *ReceiverStats) ObserveSeq(ssrc uint32, seq uint16) {
	step := int64(int16(seq - uint16(r.highest))) //nolint:gosec // modular difference
	switch {
	case !r.started || ssrc != r.ssrc || step > maxDropout || step < -maxDropout:
		before := r.Total()
		*r = ReceiverStats{started: true, ssrc: ssrc, first: int64(seq), highest: int64(seq), seen: 1, before: before, jitter: r.jitter}
	case step > 0:
		r.highest += step
		r.seen = r.seen<<min(step, dupWindow) | 1
	case step <= -dupWindow: // too old to tell whether it is a duplicate
	case r.seen&(1<<-step) != 0:
		r.duplicates++
	default:
		r.seen |= 1 << -step
	}
	r.received++
}

// ObserveTime records the timestamp and the arrival time of an audio packet.
func (r *ReceiverStats) ObserveTime(ts uint32, at time.Duration) {
	transit := float64(at)*rate/float64(time.Second) - float64(ts)
	if r.timed {
		d := transit - r.transit
		if d < 0 {
			d = -d
		}
		if d < rate { // a larger difference means that the sender's clock was set
			r.jitter += (d - r.jitter) / 16
		}
	}
	r.transit, r.timed = transit, true
}

// Jitter returns the interarrival jitter.
func (r *ReceiverStats) Jitter() time.Duration {
	return time.Duration(r.jitter / rate * float64(time.Second))
}

func (r *ReceiverStats) expected() int64 {
	if !r.started {
		return 0
	}
	return r.highest - r.first + 1
}

// Total returns the counts so far, without duplicates.
func (r *ReceiverStats) Total() Counts {
	unique := r.received - r.duplicates
	return Counts{r.before.Packets + unique, r.before.Lost + max(0, r.expected()-unique)}
}

// Block returns a report block and begins the next report interval. It returns false before the first packet.
// Duplicates reduce the number of lost packets, as RFC 3550 appendix A.3 defines.
func (r *ReceiverStats) Block() (Block, bool) {
	if !r.started {
		return Block{}, false
	}
	expected, received := r.expected()-r.reportedExpected, r.received-r.reportedReceived
	r.reportedExpected, r.reportedReceived = r.expected(), r.received
	b := Block{
		SSRC: r.ssrc, Lost: max(-1<<23, min(1<<23-1, r.expected()-r.received)),
		Highest: uint32(r.highest), Jitter: uint32(r.jitter), //nolint:gosec // the low half; jitter is below rate
	}
	if lost := expected - received; lost > 0 && expected > 0 {
		b.Fraction = uint8(min(255, lost<<8/expected)) //nolint:gosec // at most 255
	}
	return b, true
}
