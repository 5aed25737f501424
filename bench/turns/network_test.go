package turns

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// afterStart returns a fixed time plus ms milliseconds.
func afterStart(ms int) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond)
}

// TestEdges checks that Without removes the delay of the network, and that it reports faults at the edges.
func TestEdges(t *testing.T) {
	late := func(ms ...int) (n []packet) {
		for i, d := range ms {
			p := packet{in: afterStart(20 * i)}
			if d >= 0 {
				p.out = afterStart(20*i + d)
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
		"no packets":      {late(30, 30, 30, 30), nil, 70 * time.Millisecond, nowhere},
	} {
		n := &Network{there: c.there, back: c.back}
		// The answer was sent as packet 3 and heard as packet 6 arrived, which is 70 ms at the callee.
		d, why := n.Without(70*time.Millisecond, afterStart(60), afterStart(130))
		if d != c.want || why != c.why {
			t.Errorf("%s: got %v, %q; want %v, %q", name, d, why, c.want, c.why)
		}
	}
	// The first two packets of the answer and the packet before them were lost, and all were loud.
	n := &Network{there: late(30, 30, 30, 30, 30, 30, 30, 30), back: late(10, 10, 10, -1, -1, -1, 10, 10)}
	n.back[4].loud, n.back[5].loud, n.back[6].loud = true, true, true
	if d, why := n.Without(70*time.Millisecond, afterStart(60), afterStart(130)); d != -10*time.Millisecond || why != lost {
		t.Errorf("start of the answer lost: got %v, %q", d, why)
	}
	if d, why := (*Network)(nil).Without(time.Second, afterStart(0), afterStart(0)); d != time.Second || why != "" {
		t.Errorf("no network: got %v, %q", d, why)
	}
}

// TestLoud checks which packets are audible, for both G.711 codecs.
func TestLoud(t *testing.T) {
	word, _ := tone.Encode(8000, "yes")
	for name, c := range map[string]struct {
		kind  byte
		codec codec.Codec
		pcm   []int16
		want  bool
	}{
		"a word":           {0, codec.PCMU{}, word[:160], true},
		"its end":          {0, codec.PCMU{}, append(make([]int16, 80), word[:80]...), true},
		"silence":          {0, codec.PCMU{}, make([]int16, 160), false},
		"a word in A-law":  {8, codec.PCMA{}, word[:160], true},
		"silence in A-law": {8, codec.PCMA{}, make([]int16, 160), false},
		"unknown codec":    {9, codec.PCMU{}, word[:160], false},
	} {
		payload := make([]byte, 160)
		c.codec.NewEncoder().Encode(payload, c.pcm)
		if got := loud(c.kind, payload); got != c.want {
			t.Errorf("%s: got loud %v", name, got)
		}
	}
}
