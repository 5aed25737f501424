package rtp

import (
	"net/netip"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media/crypt"
	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/latch"
)

// maxPayload is the longest payload that is taken, in bytes.
const maxPayload = jitter.MaxPayload

// comfortType is the static payload type of comfort noise (RFC 3389).
const comfortType = 13

// A receiver is the state of the incoming stream before its reader.
type receiver struct {
	params   *terms        // followed
	followed time.Duration // since when
	header   rtp.Header
	latch    latch.Latch
	digits   dtmf.Events
	heard    bool
	expired  bool
	last     time.Duration // when the party was last heard, or could have begun
	pushed   bool          // the reader was woken since the last tick
	opened   [maxPacket]byte
}

// follow goes on with other parameters. The party may have moved, but is the
// same: what it was heard saying stays heard.
func (r *receiver) follow(p *terms, now time.Duration) {
	if r.params == nil || r.params.Remote != p.Remote {
		r.latch.Tell(p.Remote, now)
	}
	r.params, r.followed, r.last, r.expired = p, now, now, false
}

// receive takes one packet off the wire, on the clock.
func (s *Session) receive(b []byte, src netip.AddrPort, at time.Time) {
	r, agreed := &s.receiver, s.agreed(at)
	if agreed == nil {
		return
	}
	if agreed.Mux && isControl(b) {
		s.hearReport(agreed, b, src, at)
		return
	}
	p, ok := parse(&r.header, b)
	if !ok || len(p.payload) > maxPayload+crypt.Overhead {
		s.count.malformed.Add(1)
		return
	}
	now := at.Sub(s.opened)
	if !r.latch.Admits(src, now) {
		s.count.ignored.Add(1)
		return
	}
	if !r.unseal(agreed, b, &p) {
		s.count.forged.Add(1)
		return
	}
	is := r.meaning(agreed, p.pt, now)
	switch {
	case len(p.payload) > maxPayload:
		s.count.malformed.Add(1)
		return
	case !is.agreed:
		s.stray(&p, src, now)
		return
	}
	r.latch.Accept(src, p.ssrc, p.seq, now)
	s.count.received.Add(1)
	s.control.see(&p, is.kind == jitter.Speech, now)
	r.heard, r.last = true, now
	if is.kind == jitter.Key {
		if key, pressed := r.digits.Hear(p.ssrc, p.ts, p.marker, p.payload); pressed {
			s.dialled(key, dtmf.Event, now)
		}
	}
	s.pass(p.coming(is, now))
}

// stray counts a packet of no payload type agreed on. Where it is the party's,
// the party is there, and the number is of the sequence all the same: so that
// nothing seems lost the reader is told, and the reports are.
func (s *Session) stray(p *packet, src netip.AddrPort, now time.Duration) {
	s.count.unknown.Add(1)
	if src != s.receiver.latch.Source() {
		return
	}
	s.receiver.last = now
	s.control.see(p, false, now)
	if s.read.Load() {
		in := p.coming(meaning{kind: jitter.Key}, now)
		s.in.Push(&in)
	}
}

// pass hands a packet to the reader, where there is one: nobody will want to
// hear later what nobody listens to now.
func (s *Session) pass(p jitter.Packet) {
	if !s.read.Load() {
		return
	}
	if !s.in.Push(&p) {
		s.count.overflow.Add(1)
		return
	}
	if p.Kind == jitter.Key {
		return // it can wait for the next frame
	}
	s.receiver.pushed = true
	s.nudge()
}
