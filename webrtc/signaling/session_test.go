package signaling

import (
	"testing"
	"time"
)

// TestTextPace checks that a session may send textBurst texts at once, then one for each textInterval, and that refused
// texts do not count.
func TestTextPace(t *testing.T) {
	s, now := &Session{}, time.Unix(1_000_000, 0)
	send := func(n int) (sent int) {
		for range n {
			if s.mayText(now) {
				sent++
			}
		}
		return sent
	}
	for i, step := range []struct {
		after time.Duration
		want  int
	}{{0, textBurst}, {textInterval / 2, 0}, {textInterval / 2, 1}, {3 * textInterval, 3}, {time.Hour, textBurst}} {
		now = now.Add(step.after)
		if got := send(2 * textBurst); got != step.want {
			t.Errorf("step %d: %d texts, want %d", i, got, step.want)
		}
	}
}
