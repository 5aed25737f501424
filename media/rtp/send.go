package rtp

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/crypt"
	"github.com/parley-voice/parley/media/dtmf"
)

// maxHeld is what may wait for a packet: 60 ms and the frame that makes it
// more.
const maxHeld = 4 * frameLen

// A sender is the state of the outgoing stream.
type sender struct {
	seq    uint16
	ssrc   uint32
	ts     uint32 // of the frame that is due
	params *terms // of the last frame
	begun  bool
	marker bool           // of the next packet of audio
	last   time.Time      // due of the last frame
	next   time.Time      // when the next packet may leave
	event  uint32         // timestamp of the key that is down
	held   int            // bytes of audio in wire that wait for their packet
	aimed  netip.AddrPort // the socket aims there
	pcm    [maxFrame]int16
	wire   [headerLen + maxHeld]byte
	sealed [headerLen + maxHeld + crypt.Overhead]byte
}

// init begins the stream at random numbers (RFC 3550 section 5.1).
func (o *sender) init() {
	o.seq, o.ts, o.ssrc = uint16(rand.Uint32()), rand.Uint32(), rand.Uint32() //nolint:gosec // the top half falls off; no secret is kept
	o.marker = true
}

// send fills and encodes the frame that is due, and sends what is due of it.
// Time that the clock had to skip passes on the RTP clock too, so that the
// party does not hear later and later.
func (s *Session) send(p *terms, due time.Time) {
	o := &s.sender
	o.follow(p)
	if o.begun {
		frames := int64((due.Sub(o.last) + media.FrameTime/2) / media.FrameTime)
		if frames > 1 {
			s.count.underruns.Add(frames - 1)
			o.held = 0 // too old to be continued
		}
		o.ts += uint32(frames * int64(frameLen)) //nolint:gosec // wraps on a circle
	}
	o.last, o.begun = due, true
	pcm := o.pcm[:media.FrameLen(p.rate)]
	if feed := s.feed.Load(); feed != nil {
		(*feed).FillFrame(pcm, o.leaves(p, due))
	} else {
		clear(pcm)
	}
	if p.Mute {
		o.held, o.marker = 0, true
		return
	}
	if !s.aim() {
		s.count.unsent.Add(1)
		o.held, o.marker = 0, true
		return
	}
	if step := s.dialer.Next(); step.Busy {
		if p.KeyType != 0 && !p.InBand {
			s.event(p, step)
			return
		}
		if p.InBand {
			dtmf.Tone(pcm, p.rate, step)
		}
	}
	o.held += p.encoder.Encode(o.wire[headerLen+o.held:], pcm)
	s.leave(p, due)
}

// follow goes on with other parameters. What waits in another format is
// dropped: it is less than a packet.
func (o *sender) follow(p *terms) {
	if o.params != nil && (o.params.PayloadType != p.PayloadType || o.params.encoder != p.encoder) {
		o.held = 0
	}
	o.params = p
}

// leaves is when the packet leaves that holds the beginning of the frame which is
// due: at once, unless frames after it fill the packet, or one before it is to
// leave yet.
func (o *sender) leaves(p *terms, due time.Time) time.Time {
	n := int(p.ptime * Rate / time.Second)
	at := due
	if lacks := n - o.held%n - frameLen; lacks > 0 {
		at = due.Add(time.Duration((lacks+frameLen-1)/frameLen) * media.FrameTime)
	}
	if o.next.After(at) {
		return o.next
	}
	return at
}

// aim is false where there is nowhere to send to yet.
func (s *Session) aim() bool {
	to := s.receiver.latch.Target()
	if to != s.sender.aimed {
		s.socket.Aim(to)
		s.sender.aimed = to
	}
	return to.IsValid()
}

// leave sends the packet of audio that is due, if it is full.
func (s *Session) leave(p *terms, due time.Time) {
	o := &s.sender
	n := int(p.ptime * Rate / time.Second)
	if o.held < n || due.Before(o.next) {
		return
	}
	o.next = due.Add(p.ptime)
	s.packet(packet{marker: o.marker, pt: p.PayloadType, ts: o.ts + uint32(frameLen-o.held)}, n) //nolint:gosec // wraps on a circle
	o.marker = false
	o.held = copy(o.wire[headerLen:], o.wire[headerLen+n:headerLen+o.held])
}

// packet sends n bytes of the wire under a header.
func (s *Session) packet(head packet, n int) {
	o := &s.sender
	o.seq++
	head.seq, head.ssrc = o.seq, o.ssrc
	putHeader(o.wire[:], head)
	wire, ok := o.params.sealed(o.sealed[:0], o.wire[:headerLen+n])
	if ok && s.socket.Send(wire) {
		s.count.sent.Add(1)
		s.control.say(n)
	} else {
		s.count.unsent.Add(1)
	}
}

// midframe is the clock's call between two frames: a packet that is no multiple
// of a frame may be due.
type midframe struct{ *Session }

// Tick implements pace.Stream.
func (m midframe) Tick(due time.Time) {
	s := m.Session
	p := s.sender.params
	if p == nil || s.sender.held == 0 || p.ptime%media.FrameTime == 0 {
		return
	}
	s.leave(p, due)
}
