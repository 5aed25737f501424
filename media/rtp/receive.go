package rtp

import (
	"net/netip"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media/dtmf"
	"github.com/parley-voice/parley/media/jitter"
	"github.com/parley-voice/parley/media/latch"
	"github.com/parley-voice/parley/media/srtp"
)

// maxPayload is the maximum length of a payload, in bytes.
const maxPayload = jitter.MaxPayload

// comfortType is the static payload type of comfort noise (RFC 3389).
const comfortType = 13

// incoming is the part of the incoming stream's state that only the clock uses.
type incoming struct {
	params     *activeParams // current parameters
	paramsAt   time.Duration // time at which params changed
	header     rtp.Header
	latch      latch.Latch
	digits     dtmf.EventDecoder
	started    bool
	expired    bool
	last       time.Duration // time of the last packet or change of params
	reportedAt time.Duration // time of the last RTCP packet; 0 if there was none
	pushed     bool          // the reader was woken since the last tick
	opened     [maxPacket]byte
}

// update applies new parameters. The remote address may change, but the stream stays the same.
func (r *incoming) update(p *activeParams, now time.Duration) {
	r.latch.Expect(p.Expected)
	if r.params == nil || r.params.Remote != p.Remote {
		r.latch.SetRemote(p.Remote, now)
	}
	r.params, r.paramsAt, r.last, r.expired = p, now, now, false
}

func (s *Session) receive(b []byte, src netip.AddrPort, at time.Time) {
	r, agreed := &s.receiver, s.currentParams(at)
	if agreed == nil {
		return
	}
	if agreed.Mux && isControl(b) {
		s.receiveReport(agreed, b, src, at)
		return
	}
	p, ok := parse(&r.header, b)
	if !ok || len(p.payload) > maxPayload+srtp.Overhead {
		s.count.malformed.Add(1)
		return
	}
	now := at.Sub(s.opened)
	if !r.latch.Admits(src, now) {
		s.count.ignored.Add(1)
		return
	}
	if !r.decrypt(agreed, b, &p) {
		s.count.forged.Add(1)
		return
	}
	kind := r.kindOf(agreed, p.pt, now)
	switch {
	case len(p.payload) > maxPayload:
		s.count.malformed.Add(1)
		return
	case !kind.agreed:
		s.receiveUnknown(&p, src, now)
		return
	}
	r.latch.Accept(src, p.ssrc, p.seq, now)
	s.count.received.Add(1)
	s.control.countReceived(&p, kind.kind == jitter.Speech, now)
	r.started, r.last = true, now
	if kind.kind == jitter.Key {
		if key, pressed := r.digits.Decode(p.ssrc, p.ts, p.marker, p.payload); pressed {
			s.queueKey(key, dtmf.Event, now)
		}
	}
	s.pushToReader(p.forReader(kind, now))
}

// receiveUnknown counts a packet with an unknown payload type. A packet from the current source shows that the remote
// party is present. Its sequence number is recorded, so that the packet does not count as lost.
func (s *Session) receiveUnknown(p *packet, src netip.AddrPort, now time.Duration) {
	s.count.unknown.Add(1)
	if src != s.receiver.latch.Source() {
		return
	}
	s.receiver.last = now
	s.control.countReceived(p, false, now)
	if s.reading.Load() {
		in := p.forReader(payloadKind{kind: jitter.Key}, now)
		s.in.Push(&in)
	}
}

// pushToReader passes a packet to the reader. It drops packets that come before the first ReadFrame.
func (s *Session) pushToReader(p jitter.Packet) {
	if !s.reading.Load() {
		return
	}
	if !s.in.Push(&p) {
		s.count.overflow.Add(1)
		return
	}
	if p.Kind == jitter.Key {
		return // do not wake the reader for it
	}
	s.receiver.pushed = true
	s.wakeReader()
}
