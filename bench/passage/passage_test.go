package passage

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
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
	// The answer's first two packets were lost, and were loud; the one before them too.
	n := &Network{there: late(30, 30, 30, 30, 30, 30, 30, 30), back: late(10, 10, 10, -1, -1, -1, 10, 10)}
	n.back[4].loud, n.back[5].loud, n.back[6].loud = true, true, true
	if d, why := n.Without(70*time.Millisecond, at(60), at(130)); d != -10*time.Millisecond || why != lost {
		t.Errorf("the answer's beginning lost: %v, %q", d, why)
	}
	if d, why := (*Network)(nil).Without(time.Second, at(0), at(0)); d != time.Second || why != "" {
		t.Errorf("nothing between: %v, %q", d, why)
	}
}

// TestLoud: what a listener hears of a packet is known of both laws.
func TestLoud(t *testing.T) {
	word, _ := tone.Say(8000, "yes")
	for name, c := range map[string]struct {
		kind  byte
		codec codec.Codec
		pcm   []int16
		want  bool
	}{
		"a word":             {0, codec.PCMU{}, word[:160], true},
		"its end":            {0, codec.PCMU{}, append(make([]int16, 80), word[:80]...), true},
		"silence":            {0, codec.PCMU{}, make([]int16, 160), false},
		"a word in A-law":    {8, codec.PCMA{}, word[:160], true},
		"silence in A-law":   {8, codec.PCMA{}, make([]int16, 160), false},
		"of no law we speak": {9, codec.PCMU{}, word[:160], false},
	} {
		payload := make([]byte, 160)
		c.codec.NewEncoder().Encode(payload, c.pcm)
		if got := loud(c.kind, payload); got != c.want {
			t.Errorf("%s: loud %v", name, got)
		}
	}
}
