// Package passage is the network between the two ends of a call, which knows of
// every packet of audio when it came in and went on: so what one end measured can
// be held against what passed at the other.
package passage

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/relay"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// A Network is what lies between the two ends of a call, and what became of each
// packet of audio in it.
type Network struct {
	relay *relay.Relay

	mu          sync.Mutex
	there, back []packet // from the callee, and to it, as they came in
}

// A packet is when one came in and went on; out is zero where it was lost. loud
// tells that a listener would have heard it.
type packet struct {
	in, out time.Time
	loud    bool
}

// delay is how long the packet was under way.
func (p packet) delay() time.Duration { return p.out.Sub(p.in) }

// Between puts the network between the ends of a call.
func (n *Network) Between(ours, theirs netip.AddrPort, s *scene.Scene, seed uint64) (toldThem, toldUs netip.AddrPort, err error) {
	n.relay = &relay.Relay{Target: theirs, There: *s.From.Relay(), Back: *s.To.Relay(), Seed: seed, Tap: n.tap}
	toldUs, toldThem, err = n.relay.Join(ours)
	return toldThem, toldUs, err
}

// tap keeps when a packet of audio passed.
func (n *Network) tap(p relay.Passing) {
	const version, header, event = 2, 12, 101
	kind := byte(0)
	if len(p.Data) > 1 {
		kind = p.Data[1] & 0x7f
	}
	if len(p.Data) < header || p.Data[0]>>6 != version || kind >= 72 && kind <= 76 || kind == event {
		return // no RTP, or no audio
	}
	x := packet{in: p.In, loud: loud(kind, p.Data[header:])}
	if len(p.Out) > 0 {
		x.out = slices.MinFunc(p.Out, time.Time.Compare)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.There {
		n.there = append(n.there, x)
	} else {
		n.back = append(n.back, x)
	}
}

// loud tells whether a listener hears anything in a packet of G.711; of other
// codecs it is not known.
func loud(kind byte, payload []byte) bool {
	var d codec.Decoder
	switch kind {
	case codec.PCMU{}.PayloadType():
		d = codec.PCMU{}.NewDecoder()
	case codec.PCMA{}.PayloadType():
		d = codec.PCMA{}.NewDecoder()
	default:
		return false
	}
	pcm := make([]int16, len(payload))
	d.Decode(pcm, payload)
	for window := range slices.Chunk(pcm, codec.PCMU{}.Rate()/100) {
		if tone.Level(window) > acoustic.Audible {
			return true
		}
	}
	return false
}

// Close ends the network. A call without one has none to end.
func (n *Network) Close() error {
	if n == nil || n.relay == nil {
		return nil
	}
	return n.relay.Close()
}

// slack is by how much two clock readings of the same packet may differ.
const slack = 3 * time.Millisecond

// sent is the packet with what the callee said at a time, by its number.
func (n *Network) sent(at time.Time) (int, bool) {
	i := slices.IndexFunc(n.there, func(p packet) bool { return p.in.After(at.Add(-slack)) })
	return i, i >= 0
}

// reach is how many packets may be lost in a row at an edge that is still known.
const reach = 5

// came is the packet that the callee got at about a time.
func (n *Network) came(at time.Time) (int, bool) {
	best, least := -1, reach*media.FrameTime
	for i, p := range n.back {
		if d := p.out.Sub(at).Abs(); !p.out.IsZero() && d < least {
			best, least = i, d
		}
	}
	return best, best >= 0
}

// An edge is the end of a line, or the beginning of an answer, on the network.
type edge struct {
	server time.Time // when the server's end saw it
	why    string    // why it may not have; empty for no reason
}

// Edges: how many packets before it, and after it, are those of an edge.
const around = 2

// Reasons why the server's end and the callee's disagree.
const (
	lost     = "a packet of the edge was lost"
	tooLate  = "a packet of the edge came late"
	nowhere  = "the packet of the edge is not known"
	patience = 40 * time.Millisecond // above the least delay: the most that a listener holds packets for
)

// Without is how long the server's end took to answer what left the callee at
// sent with what the callee got at came: gap less what the network took of it.
// Where it cannot be known, why says so.
func (n *Network) Without(gap time.Duration, sent, came time.Time) (d time.Duration, why string) {
	if n == nil {
		return gap, ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	last, first := n.last(sent), n.first(came)
	if why = cmp.Or(last.why, first.why); last.server.IsZero() || first.server.IsZero() {
		return gap, why
	}
	return first.server.Sub(last.server), why
}

// last is the edge of a line that the callee ended at a time.
func (n *Network) last(at time.Time) edge {
	i, ok := n.sent(at)
	if !ok {
		return edge{why: nowhere}
	}
	why := n.why(n.there, i)
	for k := i; k >= max(0, i-reach); k-- {
		if p := n.there[k]; !p.out.IsZero() {
			return edge{p.out.Add(n.there[i].in.Sub(p.in)), why} // when it would have come
		}
	}
	return edge{why: why}
}

// first is the edge of an answer that the callee began to hear at a time: that of
// its first audible packet, whether or not that came.
func (n *Network) first(at time.Time) edge {
	i, ok := n.came(at)
	if !ok {
		return edge{why: nowhere}
	}
	why, k := n.why(n.back, i), i
	for k > 0 && n.back[k-1].loud && n.back[k-1].out.IsZero() {
		k--
	}
	if k < i {
		return edge{n.back[k].in, why} // it would have been heard
	}
	p := n.back[i]
	return edge{p.in.Add(at.Sub(p.out)), why} // what was made up came between two
}

// why looks at the packets around an edge.
func (n *Network) why(all []packet, at int) string {
	least := time.Duration(math.MaxInt64)
	for _, p := range all {
		if !p.out.IsZero() {
			least = min(least, p.delay())
		}
	}
	why := ""
	for _, p := range all[max(0, at-around):min(len(all), at+2)] {
		switch {
		case p.out.IsZero():
			return lost
		case p.delay() > least+patience:
			why = tooLate
		}
	}
	return why
}
