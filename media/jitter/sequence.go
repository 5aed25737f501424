package jitter

const (
	seqWindow  = 64   // number of recent sequence numbers among which duplicates are recognized
	maxSeqJump = 3000 // a larger jump means a new stream (RFC 3550 appendix A.1)
)

type sequence struct {
	started bool
	ssrc    uint32
	first   int64 // extended sequence numbers
	highest int64
	seen    uint64 // bit n is set if packet highest-n was received

	got  int64 // packets received since first
	lost int64 // packets lost before first
	dup  int64
}

// observe records a sequence number. It returns false for a duplicate.
func (q *sequence) observe(ssrc uint32, seq uint16) bool {
	step := int64(int16(seq - uint16(q.highest))) //nolint:gosec // modular difference
	switch {
	case !q.started || ssrc != q.ssrc || step > maxSeqJump || step < -maxSeqJump:
		q.restart(ssrc, seq)
	case step > 0:
		q.highest += step
		q.seen = q.seen<<min(step, seqWindow) | 1
	case step <= -seqWindow: // too old to tell whether it is a duplicate
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
	*q = sequence{started: true, ssrc: ssrc, first: int64(seq), highest: int64(seq), seen: 1, lost: lost, dup: q.dup}
}

func (q *sequence) missing() int64 {
	if !q.started {
		return q.lost
	}
	return q.lost + max(0, q.highest-q.first+1-q.got)
}
