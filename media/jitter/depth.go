package jitter

import "time"

const (
	minDepth   = 20 * time.Millisecond
	maxDepth   = 120 * time.Millisecond
	firstDelay = 20 * time.Millisecond // taken for the worst while nothing is known: a depth of 60 ms
	depthSpan  = 5 * time.Second       // the worst delay is remembered for one to two of these
	teachable  = 2 * maxDepth          // a longer delay is an outage, which no depth can bridge
)

// A depth is how long a hole is waited for beyond the quickest path: twice the
// worst delay seen lately and a frame, so that it grows with the first packet
// that was slow and shrinks when none was for a while. Frames that are whole
// do not wait for it.
type depth struct {
	worst, before time.Duration // delays of this span and the one before
	since         time.Duration
}

// learn takes how much slower than the quickest path a packet was.
func (d *depth) learn(delay, at time.Duration) {
	if at-d.since > depthSpan {
		d.before, d.worst, d.since = d.worst, 0, at
	}
	if delay <= teachable {
		d.worst = max(d.worst, delay)
	}
}

func (d *depth) get() time.Duration {
	return max(minDepth, min(maxDepth, 2*max(d.worst, d.before)+frameTime))
}
