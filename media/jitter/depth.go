package jitter

import "time"

const (
	minDepth   = 20 * time.Millisecond
	maxDepth   = 120 * time.Millisecond
	firstDelay = 20 * time.Millisecond // worst delay that is assumed at the start, which makes a depth of 60 ms
	depthSpan  = 5 * time.Second       // the worst delay is kept for one to two of these spans
	maxLearned = 2 * maxDepth          // a longer delay is an outage that no depth can bridge
)

// depth is how long a frame waits for missing packets, beyond the shortest transit: twice the worst recent delay plus
// one frame. It grows with the first slow packet and shrinks some time after the last one. Complete frames do not
// wait.
type depth struct {
	worst, before time.Duration // worst delay in the current and in the previous span
	since         time.Duration
}

// learn records how much slower a packet was than the fastest one.
func (d *depth) learn(delay, at time.Duration) {
	if at-d.since > depthSpan {
		d.before, d.worst, d.since = d.worst, 0, at
	}
	if delay <= maxLearned {
		d.worst = max(d.worst, delay)
	}
}

func (d *depth) get() time.Duration {
	return max(minDepth, min(maxDepth, 2*max(d.worst, d.before)+frameTime))
}
