package rtcp

import "time"

const (
	maxDropout = 3000 // a jump that is a restart (RFC 3550 appendix A.1)
	rate       = 8000 // Hz, of the RTP clock of every codec of the house
	known      = 64   // numbers in which a packet that comes twice is known
)

// A Reception counts a stream that comes in, as RFC 3550 appendices A.3 and
// A.8 say. Its zero value is ready.
type Reception struct {
	begun      bool
	ssrc       uint32
	first      int64 // extended sequence numbers
	highest    int64
	received   int64  // since first
	twice      int64  // of these
	seen       uint64 // bit n is highest-n
	before     Tally  // of streams that ended
	jitter     float64
	transit    float64
	timed      bool
	toldExpect int64 // as of the last report
	toldHeard  int64
}

// A Tally is what came and what did not.
type Tally struct {
	Packets, Lost int64
}

// See takes the number of a packet.
func (r *Reception) See(ssrc uint32, seq uint16) {
	step := int64(int16(seq - uint16(r.highest))) //nolint:gosec // a difference on a circle
	switch {
	case !r.begun || ssrc != r.ssrc || step > maxDropout || step < -maxDropout:
		before := r.Total()
		*r = Reception{begun: true, ssrc: ssrc, first: int64(seq), highest: int64(seq), seen: 1, before: before, jitter: r.jitter}
	case step > 0:
		r.highest += step
		r.seen = r.seen<<min(step, known) | 1
	case step <= -known: // too old to know
	case r.seen&(1<<-step) != 0:
		r.twice++
	default:
		r.seen |= 1 << -step
	}
	r.received++
}

// Time takes when a packet of audio came, and its timestamp.
func (r *Reception) Time(ts uint32, at time.Duration) {
	transit := float64(at)*rate/float64(time.Second) - float64(ts)
	if r.timed {
		d := transit - r.transit
		if d < 0 {
			d = -d
		}
		if d < rate { // else the clock of the sender was set
			r.jitter += (d - r.jitter) / 16
		}
	}
	r.transit, r.timed = transit, true
}

// Jitter is the interarrival jitter.
func (r *Reception) Jitter() time.Duration {
	return time.Duration(r.jitter / rate * float64(time.Second))
}

func (r *Reception) expected() int64 {
	if !r.begun {
		return 0
	}
	return r.highest - r.first + 1
}

// Total is what came and was lost so far. A packet that came twice counts
// once.
func (r *Reception) Total() Tally {
	came := r.received - r.twice
	return Tally{r.before.Packets + came, r.before.Lost + max(0, r.expected()-came)}
}

// Block reports the stream, and begins the span of the next report. It is
// false where nothing came yet. As appendix A.3 has it, a packet that came
// twice makes up for one that was lost.
func (r *Reception) Block() (Block, bool) {
	if !r.begun {
		return Block{}, false
	}
	expected, heard := r.expected()-r.toldExpect, r.received-r.toldHeard
	r.toldExpect, r.toldHeard = r.expected(), r.received
	b := Block{
		SSRC: r.ssrc, Lost: max(-1<<23, min(1<<23-1, r.expected()-r.received)),
		Highest: uint32(r.highest), Jitter: uint32(r.jitter), //nolint:gosec // the low half; jitter is below rate
	}
	if lost := expected - heard; lost > 0 && expected > 0 {
		b.Fraction = uint8(min(255, lost<<8/expected)) //nolint:gosec // at most 255
	}
	return b, true
}
