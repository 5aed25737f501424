package jitter

import (
	"testing"
	"time"
)

// TestDepthFollowsJitter checks that the depth grows with the first slow packet, and shrinks some time after the last.
func TestDepthFollowsJitter(t *testing.T) {
	d := depth{before: firstDelay}
	if got := d.get(); got != 60*ms {
		t.Errorf("initial depth %v", got)
	}
	at := time.Duration(0)
	run := func(until, delay time.Duration) {
		for ; at < until; at += 20 * ms {
			d.learn(delay, at)
		}
	}
	for _, row := range []struct {
		until, delay, want time.Duration
		when               string
	}{
		{11 * time.Second, 0, 20 * ms, "without jitter"},
		{11020 * ms, 30 * ms, 80 * ms, "one slow packet"},
		{14 * time.Second, 0, 80 * ms, "seconds later"},
		{23 * time.Second, 0, 20 * ms, "after it expired"},
		{24 * time.Second, 200 * ms, 120 * ms, "high jitter"},
		{36 * time.Second, 5 * ms, 30 * ms, "low jitter again"},
		{37 * time.Second, 10 * time.Second, 30 * ms, "after an outage"},
	} {
		if run(row.until, row.delay); d.get() != row.want {
			t.Errorf("%s: %v, want %v", row.when, d.get(), row.want)
		}
	}
}

func TestGapWaitFollowsJitter(t *testing.T) {
	for _, row := range []struct{ jitter, least, most time.Duration }{
		{0, 20 * ms, 40 * ms},
		{40 * ms, 80 * ms, 125 * ms},
	} {
		s, j, n := &testSender{ssrc: 1, ptime: 20}, New(), 1000
		var packets []*Packet
		for i := range n {
			p := s.packet(time.Duration(i)*20*ms + row.jitter*time.Duration(i%2))
			if i != n-20 {
				packets = append(packets, p)
			}
		}
		for _, r := range play(j, packets, time.Duration(n)*20*ms) {
			sent := time.Duration(n-20) * 20 * ms
			if !r.whole && r.at > time.Second {
				if wait := r.at - sent; wait < row.least || wait > row.most {
					t.Errorf("jitter of %v: the gap was released after %v", row.jitter, wait)
				}
				break
			}
		}
		if j.Stats().Late != 0 {
			t.Errorf("jitter of %v: %d late", row.jitter, j.Stats().Late)
		}
	}
}
