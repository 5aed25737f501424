package turns

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/relay"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/tone"
)

// A Network is the emulated network of a call. It records when each audio packet arrived and
// left. With these times, measurements at the callee can be compared with measurements at the
// server.
type Network struct {
	relay *relay.Relay

	mu          sync.Mutex
	there, back []packet // packets from and to the callee, in order of arrival at the network
}

// A packet has the times of its arrival at the network and its departure. out is zero if the
// packet was lost. loud means that the packet was audible.
type packet struct {
	in, out time.Time
	loud    bool
}

func (p packet) delay() time.Duration { return p.out.Sub(p.in) }

// Between inserts the network between the two ends of a call, and returns the address to which
// each end must send.
func (n *Network) Between(ours, theirs netip.AddrPort, s *scenario.Scenario, seed uint64) (forThem, forUs netip.AddrPort, err error) {
	n.relay = &relay.Relay{Target: theirs, There: *s.From.Relay(), Back: *s.To.Relay(), Seed: seed, Tap: n.tap}
	forUs, forThem, err = n.relay.Join(ours)
	return forThem, forUs, err
}

// tap records the packet if it is audio.
func (n *Network) tap(p relay.Passing) {
	const version, header, event = 2, 12, 101
	kind := byte(0)
	if len(p.Data) > 1 {
		kind = p.Data[1] & 0x7f
	}
	if len(p.Data) < header || p.Data[0]>>6 != version || kind >= 72 && kind <= 76 || kind == event {
		return // the packet is not RTP, or not audio
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

// loud reports whether a G.711 packet is audible. It returns false for other codecs.
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

// Close stops the network. A nil network is valid.
func (n *Network) Close() error {
	if n == nil || n.relay == nil {
		return nil
	}
	return n.relay.Close()
}

// slack is by how much the callee's time and the network's time of one packet can differ.
const slack = 3 * time.Millisecond

// sent returns the index of the packet that the callee sent at a time.
func (n *Network) sent(at time.Time) (int, bool) {
	i := slices.IndexFunc(n.there, func(p packet) bool { return p.in.After(at.Add(-slack)) })
	return i, i >= 0
}

// reach is the largest number of successive lost packets at which an edge can still be located.
const reach = 5

// came returns the index of the packet that reached the callee closest to at.
func (n *Network) came(at time.Time) (int, bool) {
	best, least := -1, reach*media.FrameTime
	for i, p := range n.back {
		if d := p.out.Sub(at).Abs(); !p.out.IsZero() && d < least {
			best, least = i, d
		}
	}
	return best, best >= 0
}

// An edge is the end of a line or the start of an answer, as a packet on the network.
type edge struct {
	server time.Time // when the packet passed the server's end; zero if unknown
	why    string    // why the time may be wrong; empty if it is reliable
}

// around is the number of packets before and after an edge that affect it.
const around = 2

// Reasons why the measurements of the two ends differ.
const (
	lost     = "the first or last packet was lost"
	tooLate  = "the first or last packet was late"
	nowhere  = "the first or last packet is unknown"
	patience = 40 * time.Millisecond // packets are late if their delay exceeds the minimum by more; no jitter buffer waits longer
)

// Without returns the response time at the server's end. sent is when the line left the callee,
// came is when the answer reached the callee, and gap is the time between. The result is gap
// without the delay of the network. why is the reason if the result is unreliable, or "".
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

// last returns the end of an utterance. at is when the callee sent the last packet of the utterance.
func (n *Network) last(at time.Time) edge {
	i, ok := n.sent(at)
	if !ok {
		return edge{why: nowhere}
	}
	why := n.why(n.there, i)
	for k := i; k >= max(0, i-reach); k-- {
		if p := n.there[k]; !p.out.IsZero() {
			return edge{p.out.Add(n.there[i].in.Sub(p.in)), why} // when the packet should have left
		}
	}
	return edge{why: why}
}

// first returns the start of an answer. at is when the callee heard its first packet. If audible
// packets right before were lost, the first of them is the start.
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
		return edge{n.back[k].in, why} // the answer started with a lost packet
	}
	p := n.back[i]
	return edge{p.in.Add(at.Sub(p.out)), why} // at and p.out differ if audio between two packets was concealed
}

// why returns the fault of the packets near index at, or "".
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
