package jitter

import "time"

const (
	minDepth   = 20 * time.Millisecond
	maxDepth   = 120 * time.Millisecond
	firstDelay = 20 * time.Millisecond // assumed worst delay at the start: a depth of 60 ms
	depthSpan  = 5 * time.Second       // the worst delay is remembered for one to two of these
	maxLearned = 2 * maxDepth          // a longer delay is an outage that no depth can bridge
)

// A depth is the wait for missing packets beyond the fastest path: twice the
// worst recent delay plus one frame. It grows with the first slow packet and
// shrinks after a while without any. Complete frames do not wait.
type depth struct {
	worst, before time.Duration // delays of this span and the previous one
	since         time.Duration
}

// learn records how much slower than the fastest path a packet was.
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
