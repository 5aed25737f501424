package passage

import (
	"testing"
	"time"
)

// at is a moment, in ms.
func at(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

// TestEdges: the network's part is taken out of what the callee measured, and
// what it did at the edges explains the rest.
func TestEdges(t *testing.T) {
	late := func(ms ...int) (n []packet) {
		for i, d := range ms {
			p := packet{in: at(20 * i)}
			if d >= 0 {
				p.out = at(20*i + d)
			}
			n = append(n, p)
		}
		return n
	}
	for name, c := range map[string]struct {
		there, back []packet
		want        time.Duration
		why         string
	}{
		"steady":          {late(30, 30, 30, 30, 30, 30, 30, 30), late(10, 10, 10, 10, 10, 10, 10, 10), 30 * time.Millisecond, ""},
		"jitter":          {late(30, 30, 30, 38, 30, 30, 30, 30), late(10, 10, 10, 10, 10, 10, 10, 10), 22 * time.Millisecond, ""},
		"a loss":          {late(30, 30, -1, 30, 30, 30, 30, 30), late(10, 10, 10, 10, 10, 10, 10, 10), 30 * time.Millisecond, lost},
		"a loss far off":  {late(-1, 30, 30, 30, 30, 30, 30, 30), late(10, 10, 10, 10, 10, 10, 10, 10, -1), 30 * time.Millisecond, ""},
		"the packet lost": {late(30, 30, 30, -1, 30, 30, 30, 30), late(10, 10, 10, 10, 10, 10, 10, 10), 30 * time.Millisecond, lost},
		"late":            {late(30, 30, 30, 30, 30, 30, 30, 30), late(10, 10, 10, 10, 10, 95, 10, 10), 30 * time.Millisecond, tooLate},
		"none came then":  {late(30, 30, 30, 30), nil, 70 * time.Millisecond, nowhere},
	} {
		n := &Network{there: c.there, back: c.back}
		// Sent as packet 3, and heard as packet 6 came: 70 ms on the callee's side.
		d, why := n.Without(70*time.Millisecond, at(60), at(130))
		if d != c.want || why != c.why {
			t.Errorf("%s: %v, %q; want %v, %q", name, d, why, c.want, c.why)
		}
	}
	if d, why := (*Network)(nil).Without(time.Second, at(0), at(0)); d != time.Second || why != "" {
		t.Errorf("nothing between: %v, %q", d, why)
	}
}
