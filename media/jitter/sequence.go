package jitter

const (
	seqWindow = 64   // sequence numbers in which a duplicate is known
	seqLeap   = 3000 // a jump that is a restart (RFC 3550 appendix A.1)
)

// A sequence counts what came, was lost and came twice, by sequence number.
type sequence struct {
	any     bool
	ssrc    uint32
	first   int64 // extended sequence numbers
	highest int64
	seen    uint64 // bit n is highest-n

	got  int64 // since first
	lost int64 // before first
	dup  int64
}

// see takes a packet's number and is false for a duplicate.
func (q *sequence) see(ssrc uint32, seq uint16) bool {
	step := int64(int16(seq - uint16(q.highest))) //nolint:gosec // a difference on a circle
	switch {
	case !q.any || ssrc != q.ssrc || step > seqLeap || step < -seqLeap:
		q.restart(ssrc, seq)
	case step > 0:
		q.highest += step
		q.seen = q.seen<<min(step, seqWindow) | 1
	case step <= -seqWindow: // too old to know
	case q.seen&(1<<-step) != 0:
		q.dup++
		return false
	default:
		q.seen |= 1 << -step
	}
	q.got++
	return true
}

func (q *sequence) restart(ssrc uint32, seq uint16) {
	lost := q.missing()
	*q = sequence{any: true, ssrc: ssrc, first: int64(seq), highest: int64(seq), seen: 1, lost: lost, dup: q.dup}
}

// missing is how many packets never came.
func (q *sequence) missing() int64 {
	if !q.any {
		return q.lost
	}
	return q.lost + max(0, q.highest-q.first+1-q.got)
}
